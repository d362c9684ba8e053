"""The public work of a metric bounds what is read, from the description alone."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.distances.contexts import ContextSampler
from mechanisms.distances.plan import CELL, DISTANCE, MOST_CELLS, PAIR, VISIT, Plan
from mechanisms.distances.subset_counts import contexts_of, with_target
from mechanisms.model.domains import Dataset, TableDomain
from mechanisms.model.executor import Inline
from mechanisms.model.level_tables import stored_tables
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Amount
from tests.unit.mechanisms.distances.tables import LEVELS, planned, table

LOSS = PrivacyLoss(NANO)


def drawing(public: Plan) -> Amount:
    options = public.options
    return public.work(LOSS)[f"contexts by {options.context} {options.sensitivity}"]


def balanced(rows: int) -> TableRecords:
    """Every combination equally often, so that the rarest classes are as large as possible."""
    places = np.arange(rows)
    codes, period = {}, 1
    for name, size in LEVELS.items():
        codes[name] = (places // period % size).astype(np.uint8)
        period *= size
    return TableRecords(codes, {})


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("context", ["max_relevance", "max_dependency"])
@pytest.mark.parametrize("target", ["y", "a", None])
def test_no_more_pairs_are_read_than_the_work_of_a_sensitivity_counts(
    relation: str, context: str, target: str | None
) -> None:
    rows = prod(LEVELS.values()) * 4
    dataset, records = table(relation, rows)
    if relation == "add_remove":
        domain = dataset.domain
        assert isinstance(domain, TableDomain)
        dataset = replace(dataset, domain=replace(domain, max_rows=rows))
    options = {"context": context, "context_size": 1 if target is None else 2}
    public = planned(dataset, target, **options)
    rough = planned(dataset, target, **options, sensitivity=Sensitivity.GLOBAL)
    distances = public.rows * len(public.targets)
    counted = drawing(public).units - drawing(rough).units - DISTANCE * distances
    for one in (records, balanced(rows)):
        sampler, read = ContextSampler(one, public, Inline()), 0
        for y in public.targets:
            _, delta = sampler.measured(y)
            # At distance t, the sensitivity reads the levels whose β is above t. Here β is one less
            # than the number of records in the rarest class of a level, at least 0.
            rarest = delta.levels.rarest
            read += int(sum((rarest > t).sum() for t in range(public.rows)))
        assert read <= counted


@pytest.mark.parametrize(("target", "size"), [("y", 1), ("y", 2), ("y", 3), (None, 1)])
def test_dependency_contexts_count_every_subset_and_every_cell(
    target: str | None, size: int
) -> None:
    dataset, _ = table("add_remove")
    public = planned(
        dataset, target, context="max_dependency", context_size=size, sensitivity=Sensitivity.GLOBAL
    )
    counted, contexts = with_target(public), contexts_of(public)
    assert public.subsets == len(counted) + len(contexts)
    cells = sum(
        prod(public.levels[x] for x in one) for y in public.targets for one in counted if y in one
    )
    assert 0 < cells < MOST_CELLS
    visited = sum(y in one for y in public.targets for one in counted)
    rows = public.rows * (DISTANCE + VISIT * (public.subsets + visited))
    assert drawing(public) == Amount(len(public.targets), rows + CELL * cells)


@pytest.mark.parametrize("context", ["baseline", "max_relevance", "mean_su"])
def test_stored_tables_are_priced_by_their_cells(context: str) -> None:
    dataset, _ = table("add_remove", rows=5000)
    assert isinstance(dataset.domain, TableDomain)
    stored, counted = (
        Dataset("t", dataset.neighbouring, replace(dataset.domain, level_cells=cells))
        for cells in (10**6, 0)
    )
    assert len(stored_tables(stored.domain)) > len(LEVELS)  # type: ignore[arg-type]
    options = (
        {"context": context, "context_size": 1} if context != "mean_su" else {"context": context}
    )
    few, many = (planned(one, "y", **options) for one in (stored, counted))
    # Except for the baseline, pairs of attributes are counted twice: first all pairs, to draw
    # contexts, and then those that the drawn contexts need.
    name, passes = "pairs of attributes", 1 if context == "baseline" else 2
    tables = many.tables + (passes - 1) * len(many.pairs)
    assert many.work(LOSS)[name] == Amount(passes, tables * (PAIR + many.rows))
    cells = sorted((LEVELS["y"] * LEVELS[x] for x in LEVELS if x != "y"), reverse=True)
    read = sum(cells[: few.tables]) + (passes - 1) * sum(cells)
    assert few.work(LOSS)[name] == Amount(passes, tables * PAIR + read)


def test_the_axes_of_a_context_are_at_most_the_levels_of_the_widest_attributes() -> None:
    dataset, _ = table("add_remove")
    y = list(LEVELS).index("y")
    assert planned(dataset, context="max_relevance", context_size=2).most_axes(y) == 3 + 3
    assert planned(dataset, context="baseline").most_axes(y) == 2 + 3 + 2 + 3
