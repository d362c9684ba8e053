"""An answer that has left its mechanism: from here on it is public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Release:
    """``answer`` is a JSON value, made of noise and public names only."""

    answer: Mapping[str, Any]
