"""Dense tables and visited combinations give dependency contexts the same numbers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.distances import subset_counts
from mechanisms.distances.contexts import ContextSampler
from mechanisms.distances.learn import learn
from mechanisms.distances.subset_counts import (
    DenseCounts,
    SparseCounts,
    count_subsets,
    is_dense,
)
from mechanisms.distances.tables import columns
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.distances.tables import planned, table


@pytest.mark.parametrize("target", ["y", None])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_sums_and_purest_levels_are_equal(target: str | None, size: int) -> None:
    dataset, records = table("add_remove", rows=300)
    public = planned(dataset, target, context="max_dependency", context_size=size)
    here = columns(records, public)
    dense = count_subsets(public, here, Inline())
    assert isinstance(dense, DenseCounts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subset_counts, "MOST_CELLS", 0)
        assert not is_dense(public)
        sparse = count_subsets(public, here, Inline())
    assert isinstance(sparse, SparseCounts)
    phi = np.cumsum(np.random.default_rng(0).integers(0, 99, public.rows + 1)).astype(np.int64)
    phi[0] = 0
    assert dense.sums(phi) == sparse.sums(phi)
    for one in public.targets:
        candidates = list(combinations(public.others(one), size))
        for left, right in zip(
            dense.purest(one, candidates), sparse.purest(one, candidates), strict=True
        ):
            assert left.tolist() == right.tolist()


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("sensitivity", [Sensitivity.GLOBAL, Sensitivity.LOCAL])
def test_what_is_learned_is_equal_to_the_last_bit(
    relation: str, sensitivity: Sensitivity, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, records = table(relation, rows=200)
    public = planned(
        dataset, None, context="max_dependency", context_size=2, sensitivity=sensitivity
    )
    loss = PrivacyLoss.parse("2")

    def answer() -> list[tuple[tuple[str, ...], list[float]]]:
        learned = learn(context(records, dataset, loss, SeededRandomness(3)), public)
        return [
            (tuple(a.name for a in one.context), one.points.ravel().tolist()) for one in learned
        ]

    dense = answer()
    drawing = ContextSampler(records, public, Inline())
    scores = [drawing.scores(target, 20).tolist() for target in public.targets]
    monkeypatch.setattr(subset_counts, "MOST_CELLS", 0)
    assert answer() == dense
    drawing = ContextSampler(records, public, Inline())
    assert [drawing.scores(target, 20).tolist() for target in public.targets] == scores
