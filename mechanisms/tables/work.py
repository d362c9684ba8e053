"""The public work of turning a released table into columns: intervals of sums and of quantiles.

It follows from the plan alone, and not from released numbers. An interval of a sum takes time in
proportion to the cells of the sum, and to how often a width is tried; a small ε has wider noise.
"""

from collections.abc import Iterator
from math import isqrt

from mechanisms.model.work import Work, together, work
from mechanisms.noise.gaussian_sums import places
from mechanisms.tables.aggregates import QuantilesOf
from mechanisms.tables.noise import TRIES, GaussianNoise, Noise
from mechanisms.tables.parts import Part
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import Margin

#: The width of a confidence interval is found by trial. Each trial evaluates the law of a sum of
#: noises, in a time that grows with their number. This is the fixed time of a trial, in the time
#: that one more noise takes.
LOOK = 200


def column_work(plan: TablePlan) -> Work:
    """The most work of all columns of the cells and of each margin of the answer."""
    margins: list[Margin | None] = [None, *plan.margins()]
    columns = sum(len(one.columns) for one in plan.request.aggregates)
    return together(
        work("columns of tables", 0, columns * len(margins)),
        *(_widths(plan, margin) for margin in margins),
        *(_quantiles(plan, margin) for margin in margins),
    )


def _widths(plan: TablePlan, margin: Margin | None) -> Work:
    """The widths of noise on sums: one for each part of each aggregate."""
    find = suppressed_looks if plan.dataset.minimum_count else looks
    units = [find(noise, terms) for noise, terms in _sums(plan, margin)]
    return work("widths of sums", sum(units), len(units)) if units else {}


def suppressed_looks(noise: Noise, terms: int) -> int:
    """The most work where small numbers are suppressed, so that a sum may have fewer cells.

    The width is found for all cells and for each power of 2 below their number, or for one cell.
    """
    powers = (1 << bit for bit in range(max(1, (terms - 1).bit_length())))
    return looks(noise, terms) + sum(looks(noise, size) for size in powers)


def looks(noise: Noise, terms: int) -> int:
    """The most work to find the width of a sum of so many noises, in terms that are looked at.

    The width is doubled and then halved in, and is below the scale times 10·√terms + 50. A law of
    Gaussian noise is written down once.
    """
    if isinstance(noise, GaussianNoise):
        return places(noise.deviation, terms) + LOOK
    bits = (int(noise.scale * (10 * isqrt(terms) + 50)) + 1).bit_length()
    return (2 * bits + 2) * (terms + LOOK)


def _sums(plan: TablePlan, margin: Margin | None) -> Iterator[tuple[Noise, int]]:
    """For each number with an interval, its noise and how many such noises its sum has."""
    of: dict[tuple[Part, Margin | None], Noise] = {
        (one.part, one.margin): one.noise for one in plan.measurements
    }
    for aggregate in plan.request.aggregates:
        if isinstance(aggregate, QuantilesOf):
            continue
        for part in aggregate.parts(plan.dataset):
            if margin is None or (part, margin) in of:
                yield of[part, margin], 1
            else:
                yield of[part, None], plan.merged(margin)


def _quantiles(plan: TablePlan, margin: Margin | None) -> Work:
    """Bounds of the noise below each edge, and the search for each share in each cell."""
    cells = plan.cells if margin is None else plan.cells // plan.merged(margin)
    parts: list[Work] = []
    for one in plan.request.aggregates:
        if isinstance(one, QuantilesOf):
            (part,) = one.parts(plan.dataset)
            counts = len(one.shares) * part.width
            parts.append(work("bounds of quantiles", counts * TRIES, len(one.shares)))
            parts.append(work("searches for quantiles", counts * cells, len(one.shares)))
    return together(*parts)
