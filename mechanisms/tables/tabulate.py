"""Releases a table. Read this file of the room first.

``release`` is the only function that reads records. What follows reads its result alone.
"""

from collections.abc import Mapping
from typing import NamedTuple

from mechanisms.kernels.cells import Cells, Measure, margin, tabulate
from mechanisms.kernels.distinct import distinct_persons
from mechanisms.model.context import QueryContext
from mechanisms.model.level_tables import Names, cells_as_rows
from mechanisms.model.records import TableRecords
from mechanisms.noise.addition import Integers
from mechanisms.statistics.predicate import holds, is_always
from mechanisms.tables.parts import Count, Part, RowSum
from mechanisms.tables.persons import Persons
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import Margin


class ReleasedTable(NamedTuple):
    """Noisy numbers in steps, by part: of all cells, and of each measured margin."""

    cells: Mapping[Part, Integers]
    margins: Mapping[tuple[Part, Margin], Integers]


def release(context: QueryContext, plan: TablePlan) -> ReleasedTable:
    """All numbers of the plan with noise, for every cell of the public domain.

    The records are counted once, in one pass; margins are sums of its cells. Persons are counted
    in a second pass, in each margin anew.

    Raises: UnsupportedQuery as ``TablePlan``, before anything private is read; NoiseOverflow with
        probability below n·e⁻¹⁰²⁴ for n numbers, whatever the records.
    Privacy: ``plan.loss`` under the dataset's relation, by sequential composition over the parts
        and margins, and by parallel composition over the cells of each.
    Source: Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009.
    """
    if plan.level_table is not None and plan.level_table in context.table.tables:
        sums, persons = _sums_of_stored(context, plan, plan.level_table), {}
    else:
        cells_of_rows = _cells(context, plan, context.table)
        sums, persons = _sums(context, plan, cells_of_rows), _persons(context, plan, cells_of_rows)
    cells, margins = {}, {}
    for one in plan.measurements:
        if one.part not in sums:
            table = persons[one.margin]
        elif one.margin is None:
            table = sums[one.part]
        else:
            bins = range(len(plan.shape), sums[one.part].ndim)
            table = margin(sums[one.part], (*plan.axes(one.margin), *bins))
        noisy = one.noise.add(table.ravel(), context.randomness, context.executor)
        if one.margin is None:
            cells[one.part] = noisy.reshape(table.shape)
        else:
            margins[one.part, one.margin] = noisy.reshape(table.shape)
    return ReleasedTable(cells, margins)


def _cells(context: QueryContext, plan: TablePlan, table: TableRecords) -> Cells:
    dataset, where = context.dataset, plan.request.where
    axes = tuple(one.axis(table, dataset) for one in plan.request.by)
    return Cells(axes, table.rows, None if is_always(where) else holds(where, table, dataset))


def _sums_of_stored(context: QueryContext, plan: TablePlan, names: Names) -> dict[Part, Integers]:
    """The exact counts of all cells from a stored table, read as few weighted rows: private."""
    # The stored counts are copied into a writable array, because all other arrays that the compiled
    # kernel reads are writable. For a read-only array the kernel would be compiled again.
    weights = context.table.tables[names].flatten()
    cells = _cells(context, plan, cells_as_rows(context.dataset, names))
    (counts,) = tabulate(cells, [Measure(lambda rows: weights[rows])], context.executor)
    return {Count(): counts}


def _sums(context: QueryContext, plan: TablePlan, cells: Cells) -> dict[Part, Integers]:
    """The exact sums over the rows of all cells, by part: private."""
    grids = {one.part: one.grid for one in plan.measurements}
    parts = [part for part in grids if isinstance(part, RowSum)]
    measures = [one.measure(context.table, context.dataset, grids[one]) for one in parts]
    return dict(zip(parts, tabulate(cells, measures, context.executor), strict=True))


def _persons(context: QueryContext, plan: TablePlan, cells: Cells) -> dict[Margin | None, Integers]:
    """The exact numbers of persons in all cells, and in those of each measured margin: private."""
    margins = [one.margin for one in plan.measurements if isinstance(one.part, Persons)]
    if not margins:
        return {}
    persons = context.table.persons
    if persons is None:
        raise TypeError("these rows have no persons")
    every = range(len(plan.shape))
    axes = [every if one is None else plan.axes(one) for one in margins]
    return dict(zip(margins, distinct_persons(cells, persons, axes), strict=True))
