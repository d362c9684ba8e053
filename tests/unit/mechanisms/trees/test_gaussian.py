"""Models of a class with Gaussian noise on their counts: what they cost and how wide it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accounting.composition import total, total_rho
from accounting.privacy_loss import PrivacyLoss
from app.queries import QUERY
from app.queries.parts.examples import ADULT
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.number import CONFIDENCE
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.noise.gaussian_sums import half_width
from mechanisms.trees.dice import Dice
from mechanisms.trees.forest import RandomSplits
from mechanisms.trees.task import Task
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.trees.test_forest import leaves
from tests.unit.mechanisms.trees.test_naive_bayes import ROWS, records

MISS = 1 - Fraction(repr(CONFIDENCE))
RHO = PrivacyLoss(0, 0, 5 * 10**13 + 7, 1)
#: A privacy loss so large that noise differs from 0 only with a probability of e⁻⁵⁰.
CERTAIN = PrivacyLoss(0, 0, 10**18, 1)
REPLACED = replace(
    ADULT,
    neighbouring=NeighbouringRelation.REPLACE,
    domain=replace(ADULT.domain, rows=ROWS, max_rows=None),  # type: ignore[type-var]
)
WAYS: list[dict[str, Any]] = [
    {"algorithm": "id3", "max_depth": 3},
    {"algorithm": "id3", "max_depth": 0},
    {"algorithm": "forest", "trees": 3},
    {"algorithm": "forest", "trees": 3, "splits": "private"},
    {"algorithm": "naive_bayes"},
]


def query_of(way: dict[str, Any]) -> Any:
    return QUERY.validate_python({"kind": "tree", **way})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dataset", [ADULT, REPLACED])
@pytest.mark.parametrize("people", [1, 3])
def test_the_steps_are_the_charge(dataset: Dataset, way: dict[str, Any], people: int) -> None:
    """Also for persons, whose group uses at most what each step states."""
    of_people = replace(dataset, records_per_person=people)
    steps = query_of(way).price(of_people, RHO).steps
    assert total(steps) == RHO
    assert total_rho(steps) == RHO.rho_femto
    for step in steps:
        if step.bound is not None:
            assert step.bound.femto(step.members) <= step.rho_femto
    members = {step.members for step in steps if step.bound is not None}
    removed = dataset is REPLACED and (way["algorithm"] == "id3" or "splits" in way)
    assert members == {people * (2 if removed else 1)}


@pytest.mark.parametrize("way", WAYS)
def test_a_large_rho_counts_exactly(way: dict[str, Any]) -> None:
    query = query_of(way)
    answer = query.compute(context(records(), ADULT, CERTAIN, SeededRandomness(1))).answer
    if way["algorithm"] == "naive_bayes":
        counted = answer["model"]["prior"]["value"]
        assert sum(counted) == ROWS
        return
    for tree in answer["trees"]:
        numbers = [one for leaf in leaves(tree) for one in leaf["counts"].values()]
        assert sum(one["value"] for one in numbers) == ROWS
        assert all(one["low"] <= one["value"] <= one["high"] for one in numbers)


def test_counts_of_one_leaf_have_the_deviation_of_the_whole_rho() -> None:
    """σ² = 1/(2ρ); eight standard errors of a variance. Their intervals are those of σ."""
    query, exact = query_of({"max_depth": 0}), np.bincount(records().codes["income"], minlength=2)
    noise = []
    for seed in range(200):
        answer = query.compute(context(records(), ADULT, RHO, SeededRandomness(seed))).answer
        counts = list(answer["trees"][0]["counts"].values())
        noise += [one["value"] - true for one, true in zip(counts, exact.tolist(), strict=True)]
    square = 1 / (2 * 5e-2)
    assert np.var(noise) == pytest.approx(square, rel=8 * (2 / len(noise)) ** 0.5)
    width = half_width(Deviation.of(RHO.rho_femto, 1), 1, MISS)
    assert [one["high"] - one["value"] for one in counts] == [width] * len(counts)
    assert query.price(ADULT, RHO).accuracy()["leaf_count_error"] == width


def test_a_quote_states_the_errors_of_gaussian_noise_and_expects_no_learner() -> None:
    for way in WAYS:
        quoted = dict(query_of(way).price(ADULT, RHO).accuracy())
        assert quoted.get("leaf_count_error", quoted.get("count_error")) > 0
        assert "expected_best" not in quoted
        assert "expected_best" not in quoted["explanation"]


def test_a_small_rho_grows_small_trees_by_public_facts() -> None:
    forest = RandomSplits(Task.of(ADULT, None, "income"), 8, 4)

    def size(femto: int) -> int:
        dice = Dice(SeededRandomness(2))
        return max(map(len, forest.groups(ADULT, PrivacyLoss(0, 0, femto, 1), dice)))

    assert [size(femto) for femto in (10**6, 10**9, 10**14)] == [0, 3, 4]
