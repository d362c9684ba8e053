"""An answer that has left its mechanism and is public from then on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Release:
    """``answer`` is a JSON value, made of noise and public names only."""

    answer: Mapping[str, Any]
