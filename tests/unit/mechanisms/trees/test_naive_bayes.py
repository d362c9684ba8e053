"""Naive Bayes: exact counts without noise, intervals, and suppressed counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries.parts.examples import ADULT
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import TableRecords
from mechanisms.trees.naive_bayes import Model, class_counts, learn
from mechanisms.trees.task import Task
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness

ROWS = 400
TASK = Task.of(ADULT, ("sex", "age"), "income")
#: A privacy loss so large that noise differs from 0 only with a probability of e⁻¹⁰⁰⁰.
CERTAIN = PrivacyLoss(10_000 * NANO)


def records(seed: int = 5) -> TableRecords:
    draw = np.random.default_rng(seed)
    return TableRecords(
        {
            one.name: draw.integers(0, len(one.levels), ROWS).astype(np.uint8)
            for one in ADULT.domain.attributes  # type: ignore[union-attr]
        },
        {},
    )


def learned(dataset: Dataset = ADULT, loss: PrivacyLoss = CERTAIN, seed: int = 1) -> Model:
    plan = class_counts(TASK, dataset, loss)
    return learn(context(records(), dataset, loss, SeededRandomness(seed)), plan)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_a_large_loss_counts_exactly(relation: str) -> None:
    rows = ROWS if relation == "replace" else None
    domain = replace(ADULT.domain, rows=rows, max_rows=None if rows else 1000)  # type: ignore[type-var]
    model = learned(Dataset("adult", NeighbouringRelation(relation), domain))
    codes = records().codes
    income = codes["income"]
    assert model.prior.values.tolist() == np.bincount(income, minlength=2).tolist()
    for one, counts in zip(TASK.attributes, model.attributes, strict=True):
        assert counts.values.shape == (2, len(one.levels))
        for of in range(2):
            values = codes[one.name][income == of]
            assert (
                counts.values[of].tolist()
                == np.bincount(values, minlength=len(one.levels)).tolist()
            )
    assert model.prior.suppressed is None


def test_intervals_contain_the_true_counts() -> None:
    """Each misses with a chance of 5 %: of 48 counts, 12 with a chance below 10⁻⁵."""
    truth, noisy = learned(), [learned(loss=PrivacyLoss(NANO), seed=seed) for seed in (2, 3)]
    missed = 0
    for model in noisy:
        for exact, counts in zip(truth.attributes, model.attributes, strict=True):
            assert 0 < counts.error < 15
            missed += int((abs(exact.values - counts.values) > counts.error).sum())
    assert missed < 12


def test_small_counts_and_what_would_show_them_are_suppressed() -> None:
    model = learned(replace(ADULT, minimum_count=20))
    small = model.attributes[1].values < 20
    assert small.any()
    assert not small.all()
    marks = model.attributes[1].suppressed
    assert marks is not None
    assert marks[small].all()
    # Danger: if a class had a single suppressed count, its total minus the other counts would
    # reveal it.
    assert (marks.sum(axis=1) != 1).all()
    assert model.prior.suppressed is not None
    assert not model.prior.suppressed.any()


def test_a_share_that_rounds_to_nothing_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="less than the smallest loss"):
        class_counts(TASK, ADULT, PrivacyLoss(2)).steps()
