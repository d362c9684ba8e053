"""The black-box audit: it accuses noise that is a quarter too small, and not ours.

An honest mechanism is flagged with probability 10⁻³ a run at most, so the ten honest runs of a
selector fail here, with two flags or more, for 5·10⁻⁵ of all seeds; seeds are fixed.
"""

from __future__ import annotations

from math import comb, exp, log

import numpy as np
import pytest

from benchmarks.selections.cases import objective_of
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from tests.evidence.audit import audit
from tests.evidence.audit.audit import EPSILON, Audited
from tests.support.randomness import SeededRandomness

#: The number of runs of the audit for each selector.
RUNS = 10
#: The number of answers that each run draws. The exponential mechanism needs more, because the
#: answers that show its loss are rarer.
DRAWS = {"permute_and_flip": 20_000, "exponential": 100_000}


@pytest.mark.parametrize("selector", DRAWS)
def test_small_noise_is_flagged_and_ours_is_not(selector: str) -> None:
    audited = audit.mechanisms()[selector]
    flagged = {
        scale: sum(
            audited.bound(scale, DRAWS[selector], SeededRandomness(seed)) > EPSILON
            for seed in range(RUNS)
        )
        for scale in ("full", "three quarters")
    }
    assert flagged["full"] <= 1
    assert flagged["three quarters"] >= RUNS - 1


def test_whole_queries_are_not_flagged() -> None:
    for audited in audit.whole_queries():
        assert audited.bound("full", 1000, SeededRandomness(1)) < EPSILON, audited.name


def test_a_whole_query_with_small_noise_is_flagged() -> None:
    query = audit.by_select_top(audit.replaced_row(3), "permute_and_flip", 1)
    audited = Audited("select_top", 2, query)
    assert audited.bound("three quarters", 8000, SeededRandomness(2)) > EPSILON


def drawn(law: list[float], count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).choice(len(law), size=count, p=law)


def test_the_bound_is_below_the_truth_and_near_it() -> None:
    """Randomised response of ε = 1; 200 runs may exceed the truth twice with probability 0.02."""
    truth = [exp(1) / (1 + exp(1)), 1 / (1 + exp(1))]
    result = [
        audit.lower_bound(drawn(truth, 10_000, seed), drawn(truth[::-1], 10_000, ~seed & 0xFFFF), 2)
        for seed in range(200)
    ]
    assert sum(bound > 1 for bound in result) <= 1
    assert np.median(result) > 0.85


def test_answers_that_only_one_side_gives_have_no_bound_but_the_sample() -> None:
    x, y = np.zeros(2000, dtype=np.int64), np.ones(2000, dtype=np.int64)
    assert audit.lower_bound(x, y, 2) > log(100)
    assert audit.lower_bound(x, x, 2) < 0


@pytest.mark.parametrize(("answers", "sets"), [(2, 2), (3, 6), (6, 62), (9, 9)])
def test_the_family_has_every_set_of_few_answers(answers: int, sets: int) -> None:
    family = audit.sets_of(answers)
    assert family.shape == (sets, answers)
    assert len({tuple(row) for row in family.tolist()}) == sets
    assert sets in (answers, sum(comb(answers, size) for size in range(1, answers)))


def test_the_neighbours_that_are_audited_move_scores_by_one_unit() -> None:
    """Otherwise the audit would find nothing, however small the noise."""
    assert set(audit.mechanisms()) == set(SELECTORS) == set(audit.RAREST)
    for few in audit.RAREST.values():
        x, y = (audit.replaced_row(few).scores(side) for side in (0, 1))
        assert (x - y).tolist() == [1 << 20, -1 << 20]
    flipped = audit.flipped_edge(objective_of("single", {"degree": None}), Sensitivity.GLOBAL)
    moved = flipped.scores(0) - flipped.scores(1)
    assert moved.tolist() == [1 << 20, 1 << 20, 0, 0, 0, 0]
