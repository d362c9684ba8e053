"""Clustering with Gaussian noise: what it costs, its grid, and the noise of counts and sums."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from accounting.composition import total, total_rho
from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering.cluster import cluster
from mechanisms.clustering.encoding import compact, learned, one_hot
from mechanisms.clustering.lloyd import Deviations, iteration, noise_of
from mechanisms.distances.learn import learn
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.noise.discrete_gaussian import Deviation
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.clustering.test_clustering import clustering
from tests.unit.mechanisms.clustering.test_starts import SIZE, blobs, plan_of
from tests.unit.mechanisms.distances.tables import table

RHO = PrivacyLoss(0, 0, 5 * 10**13 + 7, 1)


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize(
    "options", [{}, {"metric": None}, {"metric": None, "starts": 3}, {"metric": None, "initial": 1}]
)
def test_the_steps_are_the_charge(relation: str, options: dict[str, Any]) -> None:
    plan = clustering(relation, **{**options, "initial": None})
    if "initial" in options:
        levels = tuple(tuple(place % 2 for _ in plan.attributes) for place in range(plan.clusters))
        plan = replace(plan, initial=levels)
    steps = plan.steps(RHO)
    assert total(steps) == RHO
    assert total_rho(steps) == RHO.rho_femto
    dataset, records = table(relation)
    result = cluster(context(records, dataset, RHO), replace(plan, dataset=dataset))
    assert result.centres.points.shape[0] == plan.clusters


@pytest.mark.parametrize("moves", [1, 2])
def test_an_iteration_has_the_deviations_of_its_rho(moves: int) -> None:
    """One-hot codes of m attributes: σ² = moves·(1 + m)/(2ρ), on counts and on sums alike."""
    dataset, records = blobs()
    plan = plan_of(dataset)
    encoding = one_hot(plan.attributes, plan.bits_at(RHO))
    assert encoding.bits == 0
    assert (encoding.squares, encoding.diameter) == (12, 24)
    noise = noise_of(RHO, encoding, moves)
    square = moves * 13 / (2 * 0.05)
    for law in (noise.counts, noise.sums):
        assert isinstance(law, Deviation)
        assert float(law.square) == pytest.approx(square, rel=1e-3)
    centres = np.array([encoding.point((place,) * 12) for place in range(plan.clusters)])
    sizes = [
        iteration(context(records, dataset, RHO, SeededRandomness(seed)), encoding, centres, moves)
        for seed in range(100)
    ]
    errors = np.array([one.sizes for one in sizes]) - SIZE
    assert errors.var() == pytest.approx(square, rel=0.35)
    assert (abs(errors) <= sizes[0].error).mean() >= 0.92


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
def test_learned_points_stay_within_the_public_bound_on_squares(relation: str) -> None:
    dataset, records = table(relation)
    plan = clustering(relation)
    assert plan.metric is not None
    metrics = learn(context(records, dataset, PrivacyLoss(10**9)), plan.metric)
    moves = plan.moves
    for bits in (8, 13):
        encoding = learned(metrics, bits, 2)
        squares = max(moves * encoding.squares, encoding.diameter if moves > 1 else 0)
        assert squares <= plan.most_squares(bits)
        exact = [
            max(int(((one - other) ** 2).sum()) for one in vectors for other in vectors)
            for vectors in encoding.vectors
        ]
        assert encoding.diameter == sum(exact)
    for metric in metrics:
        norms = [(compact(metric.points, power) ** 2).sum(axis=1).max() for power in (1, 2)]
        assert norms[1] <= min(1 + 1e-9, norms[0] + 1e-9)


def test_the_grid_is_as_fine_as_the_noise_allows() -> None:
    plan = clustering("add_remove")
    bits = [plan.bits_at(PrivacyLoss(0, 0, femto, 1)) for femto in (10**12, 10**13, 10**15, 10**17)]
    assert all(one <= other for one, other in pairwise(bits))
    assert plan.bits >= bits[-1] > bits[0] >= 4
    with pytest.raises(UnsupportedQuery):
        plan.bits_at(PrivacyLoss(0, 0, 10**8, 1))


def test_the_rule_takes_more_starts_at_a_larger_rho() -> None:
    dataset, records = blobs()
    plan = plan_of(dataset, starts=None)
    choices = plan.choices(in_rho=True)
    assert [trials.starts for trials, _ in choices] == [1, 3, 8, 16, 32]
    for trials, least in choices[1:]:
        assert plan.trials(PrivacyLoss(0, 0, least, 1)) == trials
        assert plan.trials(PrivacyLoss(0, 0, least - 1, 1)) != trials
        # The least ρ for more starts is that at which σ·√axes·clusters/rows is one, where σ is the
        # standard deviation of the noise. There are 72 axes, and 30 rows per cluster.
        square = 13 * plan.releases(trials) / (2 * least / 10**15)
        assert square * 72 / 30**2 == pytest.approx(1, rel=1e-6)
    large = PrivacyLoss(0, 0, 10**18, 1)
    result = cluster(context(records, dataset, large, SeededRandomness(0)), plan)
    # The noise on a cluster's size has a standard deviation of about 1.
    assert abs(result.centres.sizes - SIZE).max() <= 10


def test_both_kinds_of_noise_use_the_whole_rho() -> None:
    for bits, squares, moves in ((0, 5, 1), (8, 70_000, 2), (4, 0, 1)):
        noise = Deviations.of(RHO, squares, bits, moves)
        spent = moves / (2 * noise.counts.square) + squares / (2 * noise.sums.square)
        assert 0.97 * 0.05 < spent <= 0.05 + 1e-14
