"""What all statistics of tables read: an attribute, its public bounds, its numbers on a grid."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.domains import Dataset, NeighbouringRelation, NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.table_candidates import attribute_named, table_domain
from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import real_exponent

_BLOCK = 1 << 20


def replaces(dataset: Dataset) -> bool:
    """True if one change replaces a row; then the number of rows is public."""
    table_domain(dataset)
    return dataset.neighbouring is NeighbouringRelation.REPLACE


def public_rows(dataset: Dataset) -> int:
    """The number of rows of a table whose relation is ``replace``; it is public."""
    rows = table_domain(dataset).rows
    if rows is None:
        raise UnsupportedQuery("rows is not fixed yet")
    return rows


def numeric(dataset: Dataset, name: str) -> NumericAttribute:
    """The numeric attribute with this name. Raises: UnsupportedQuery for any other."""
    attribute = attribute_named(dataset, name)
    if not isinstance(attribute, NumericAttribute):
        names = [
            a.name for a in table_domain(dataset).attributes if isinstance(a, NumericAttribute)
        ]
        raise UnsupportedQuery(
            "this statistic is of numbers", supported={"attributes": names or "none is numeric"}
        )
    return attribute


def number_grid(dataset: Dataset, name: str, epsilon_nano: int) -> tuple[int, int, int]:
    """The exponent of the grid of an attribute's numbers for this loss, and its bounds in steps."""
    attribute = numeric(dataset, name)
    largest = max(abs(Fraction(attribute.lower)), abs(Fraction(attribute.upper)))
    exponent = real_exponent(largest, epsilon_nano)
    return exponent, *bounds(dataset, name, exponent)


def bounds(dataset: Dataset, name: str, exponent: int) -> tuple[int, int]:
    """The public bounds in steps, rounded down like the numbers between them."""
    attribute = numeric(dataset, name)
    low, high = on_grid(np.array([attribute.lower, attribute.upper]), exponent).tolist()
    return low, high


def on_grid(numbers: NDArray[Any], exponent: int) -> Integers:
    """⌊x / 2^exponent⌋ exactly: a power of two changes no digit of a double."""
    steps: Integers = np.floor(np.ldexp(numbers, -exponent)).astype(np.int64)
    return steps


def grid_sum(numbers: NDArray[Any], exponent: int, executor: Executor) -> int:
    """Σ ⌊x / 2^exponent⌋, a whole number of any size."""

    def part(start: int) -> int:
        # At most 2²⁰ numbers of at most 2⁴⁰ steps each.
        return int(on_grid(numbers[start : start + _BLOCK], exponent).sum())

    return sum(executor.map(part, range(0, len(numbers), _BLOCK)))
