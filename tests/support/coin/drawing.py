"""The face of a coin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def draw(answer: Mapping[str, Any]) -> str:
    return f"<{answer['shows']}>"
