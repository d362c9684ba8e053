"""What all statistics of tables read: an attribute, its public bounds, its numbers on a grid."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset, NeighbouringRelation, NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.table_candidates import attribute_named, table_domain
from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import real_exponent
from mechanisms.statistics.predicate import Condition, Truths, holds

#: The number of rows that one parallel task of the executor reads.
BLOCK = 1 << 20

#: A function that returns for each row of a slice whether it meets a condition; the number 1 if all
#: rows do.
Rows = Callable[[slice], Truths | int]


def replaces(dataset: Dataset) -> bool:
    """True if one change replaces a row; then the number of rows is public."""
    table_domain(dataset)
    return dataset.neighbouring is NeighbouringRelation.REPLACE


def most_rows(dataset: Dataset) -> int:
    """The public bound on the rows, or their number where it is public; 0 before it is fixed."""
    domain = table_domain(dataset)
    return domain.rows or domain.max_rows or 0


def public_rows(dataset: Dataset) -> int:
    """The number of rows of a table whose relation is ``replace``; it is public."""
    rows = table_domain(dataset).rows
    if rows is None:
        raise UnsupportedQuery("rows is not fixed yet")
    return rows


def number_bounds(dataset: Dataset, name: str) -> tuple[Fraction, Fraction]:
    """The public bounds of an attribute's numbers, exactly."""
    attribute = numeric(dataset, name)
    return Fraction(attribute.lower), Fraction(attribute.upper)


def numeric(dataset: Dataset, name: str) -> NumericAttribute:
    """The numeric attribute with this name. Raises: UnsupportedQuery for any other."""
    attribute = attribute_named(dataset, name)
    if not isinstance(attribute, NumericAttribute):
        names = [
            a.name for a in table_domain(dataset).attributes if isinstance(a, NumericAttribute)
        ]
        raise UnsupportedQuery(
            "this statistic needs a numeric attribute",
            supported={"attributes": names or "none is numeric"},
        )
    return attribute


def every_row(_: slice) -> int:
    """The condition that all rows meet; no row is read."""
    return 1


def rows_where(where: Condition | None, context: QueryContext) -> Rows:
    """The private rows that meet a condition, which fits the dataset; all rows without one."""
    if where is None:
        return every_row
    return holds(where, context.table, context.dataset)


def blocks(dataset: Dataset) -> range:
    """Where blocks of ``BLOCK`` rows begin, up to the public bound: no row adds a block."""
    return range(0, max(most_rows(dataset), 1), BLOCK)


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


def grid_sum(
    numbers: NDArray[Any],
    exponent: int,
    origin: int,
    executor: Executor,
    starts: range,
    met: Rows = every_row,
) -> int:
    """Σ (⌊x / 2^exponent⌋ − origin) over the rows that meet a condition, a whole number.

    ``starts``: where blocks of rows begin, as of ``blocks``.

    Every row is read and added, as 0 if it does not meet the condition. So the work is a function
    of the number of rows.
    """

    def part(start: int) -> int:
        rows = slice(start, min(start + BLOCK, len(numbers)))
        # At most 2²⁰ numbers of at most 2⁴¹ steps each are added, so the sum fits into 64 bits.
        steps = on_grid(numbers[rows], exponent) - origin
        return int((steps * met(rows)).sum())

    return sum(executor.map(part, starts))
