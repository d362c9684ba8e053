"""Which way a utility and its δ lean, as public constants: what the shift of a sum is read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable


@dataclass(frozen=True)
class Trend:
    """How u and δ vary with the size of a candidate (degree of a node, records of a value).

    ``value`` and ``sensitivity`` are the signs (0: δ is constant); ``growth`` is the power of the
    size that both are of, at their largest. The direction of the utility by itself is the product
    of the signs.
    """

    value: Literal[1, -1]
    sensitivity: Literal[1, 0, -1]
    growth: int = 0


@runtime_checkable
class Leaning(Protocol):
    """A utility that says so. Any other is taken for ``Trend(1, direction)``."""

    trend: Trend
