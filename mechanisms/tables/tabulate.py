"""Releases a table. Read this file of the room first.

``release`` is the only function that reads records. What follows reads its result alone.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mechanisms.kernels.cells import Cells, Truths, margin, tabulate
from mechanisms.model.context import QueryContext
from mechanisms.noise.addition import Integers
from mechanisms.statistics.predicate import holds
from mechanisms.tables.parts import Part
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import Margin


class ReleasedTable(NamedTuple):
    """Noisy numbers in steps, by part: of all cells, and of each measured margin."""

    cells: Mapping[Part, Integers]
    margins: Mapping[tuple[Part, Margin], Integers]


def release(context: QueryContext, plan: TablePlan) -> ReleasedTable:
    """All numbers of the plan with noise, for every cell of the public domain.

    The records are counted once, in one pass; margins are sums of its cells.

    Raises: UnsupportedQuery as ``TablePlan``, before anything private is read; NoiseOverflow with
        probability below n·e⁻¹⁰²⁴ for n numbers, whatever the records.
    Privacy: ``plan.loss`` under the dataset's relation, by sequential composition over the parts
        and margins, and by parallel composition over the cells of each.
    Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009.
    """
    exact = _counted(context, plan)
    cells, margins = {}, {}
    for one in plan.measurements:
        table = exact[one.part]
        if one.margin is not None:
            bins = range(len(plan.shape), table.ndim)
            table = margin(table, (*plan.axes(one.margin), *bins))
        noisy = one.noise.add(table.ravel(), context.randomness, context.executor)
        if one.margin is None:
            cells[one.part] = noisy.reshape(table.shape)
        else:
            margins[one.part, one.margin] = noisy.reshape(table.shape)
    return ReleasedTable(cells, margins)


def _counted(context: QueryContext, plan: TablePlan) -> dict[Part, Integers]:
    """The exact numbers of all cells, by part: private."""
    table, dataset, where = context.table, context.dataset, plan.request.where

    def condition(rows: slice) -> Truths:
        return holds(where, table, dataset, rows)

    axes = tuple(one.axis(table, dataset) for one in plan.request.by)
    rows = len(next(iter(table.codes.values())))
    always = not where.get("all", True)
    cells = Cells(axes, rows, None if always else condition)
    grids = {one.part: one.grid for one in plan.measurements}
    measures = [part.measure(table, dataset, grid) for part, grid in grids.items()]
    return dict(zip(grids, tabulate(cells, measures, context.executor), strict=True))
