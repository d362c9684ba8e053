"""Encodings keep distances, initial centres are uniform, iterations find the true centres."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from accounting.composition import total
from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering.cluster import cluster
from mechanisms.clustering.encoding import compact, learned, one_hot
from mechanisms.clustering.initial import centre_levels
from mechanisms.clustering.lloyd import moved
from mechanisms.clustering.plan import ClusteringPlan, participants
from mechanisms.distances.learn import learn
from mechanisms.distances.metric import distance_matrix
from mechanisms.model.domains import CategoricalAttribute
from mechanisms.model.errors import UnsupportedQuery
from tests.support.contexts import context
from tests.unit.mechanisms.distances.tables import planned, table


def clustering(relation: str, **changes: Any) -> ClusteringPlan:
    dataset, _ = table(relation)
    fields: dict[str, Any] = {
        "dataset": dataset,
        "attributes": participants(dataset, None),
        "metric": planned(dataset, None, context_size=2),
        "distance_share": Fraction(1, 3),
        "clusters": 3,
        "iterations": 4,
    }
    return ClusteringPlan(**{**fields, **changes})


@pytest.mark.parametrize("shape", [(1, 3), (2, 5), (4, 2), (6, 9)])
def test_compact_points_keep_their_distances(shape: tuple[int, int]) -> None:
    points = np.random.default_rng(sum(shape)).random(shape) / shape[1]
    smaller = compact(points)
    assert np.allclose(distance_matrix(smaller), distance_matrix(points), atol=1e-12)
    assert np.abs(smaller).sum(axis=1).max() <= np.abs(points).sum(axis=1).max()


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_learned_codes_are_the_metric_within_its_public_reach(relation: str) -> None:
    dataset, records = table(relation)
    plan = clustering(relation)
    assert plan.metric is not None
    metrics = learn(context(records, dataset, PrivacyLoss(10**10)), plan.metric)
    encoding = learned(metrics, plan.bits)
    assert encoding.reach <= plan.most_reach << plan.bits
    for points, one in zip(encoding.points, metrics, strict=True):
        assert np.allclose(distance_matrix(points), one.matrix, atol=2.0 ** (3 - plan.bits))
    low, high = encoding.box
    for record in ([0] * 5, [1, 2, 1, 2, 2]):
        assert ((low <= encoding.point(record)) & (encoding.point(record) <= high)).all()
    assert dataset.name == "made-up"


def test_initial_centres_are_of_the_domain() -> None:
    attributes = (CategoricalAttribute("a", ("0", "1", "2")), CategoricalAttribute("b", ("x",)))
    assert centre_levels(attributes, [{"a": "2", "b": "x"}]) == [(2, 0)]
    for wrong in ({"a": "2"}, {"a": "3", "b": "x"}, {"a": "2", "b": "x", "c": "y"}):
        with pytest.raises(UnsupportedQuery):
            centre_levels(attributes, [wrong])


@pytest.mark.parametrize("relation, moves", [("replace", 2), ("add_remove", 1)])
def test_steps_add_up(relation: str, moves: int) -> None:
    for metric in (True, False):
        plan = clustering(relation) if metric else clustering(relation, metric=None)
        for loss in (PrivacyLoss(10**9), PrivacyLoss(123_456_789), PrivacyLoss(10**9, 5)):
            assert total(plan.steps(loss)) == loss
        assert plan.moves == moves
    bare = clustering(relation, metric=None)
    # With T iterations and R attributes the scale of the noise on counts is (T + 1)·(1 + R)/ε, and
    # twice that under replace.
    assert bare.count_noise_scale(PrivacyLoss(10**9)) == pytest.approx(5 * 6 * moves)


def test_public_limits_are_refused() -> None:
    for changes in ({"clusters": 109}, {"iterations": 10**9}):
        with pytest.raises(UnsupportedQuery):
            clustering("replace", **changes)
    many = tuple(CategoricalAttribute(f"a{i}", ("0", "1")) for i in range(3_000))
    with pytest.raises(UnsupportedQuery):
        clustering("replace", attributes=many, metric=None)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_centres_are_means_with_much_loss(relation: str) -> None:
    """One iteration, one cluster: the mean of all records."""
    dataset, records = table(relation)
    plan = clustering(relation, metric=None, clusters=1, iterations=1, initial=((0,) * 5,))
    result = cluster(context(records, dataset, PrivacyLoss.parse("1000000")), plan)
    codes = (records.codes[a.name] for a in plan.attributes)
    shares = [np.bincount(c, minlength=len(a.levels)) / 40
              for c, a in zip(codes, plan.attributes, strict=True)]  # fmt: skip
    assert np.allclose(result.centres.points[0], np.concatenate(shares), atol=1e-3)
    assert result.centres.sizes.tolist() == [40]
    assert result.centres.error == 0
    assert dataset.neighbouring == relation


def test_noisy_centres_stay_in_the_box() -> None:
    plan = clustering("replace", metric=None)
    encoding = one_hot(plan.attributes, 4)
    counts = np.array([-5, 0, 7])
    sums = np.random.default_rng(2).integers(-1000, 1000, (3, len(encoding.box[0])))
    centres = moved(counts, sums, encoding)
    low, high = encoding.box
    assert ((low <= centres) & (centres <= high)).all()
