"""An answer that has left its mechanism and is public from then on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Release:
    """A public answer: a JSON value made of noisy or privately selected values and public names."""

    answer: Mapping[str, Any]
