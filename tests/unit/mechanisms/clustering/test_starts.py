"""Starts of a clustering: the public rule, noisy counts to draw from, and the best of several."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from accounting.composition import total
from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.clustering import starts
from mechanisms.clustering.cluster import cluster
from mechanisms.clustering.encoding import one_hot
from mechanisms.clustering.lloyd import Centres, partial_distances
from mechanisms.clustering.plan import RULE_WORK, ClusteringPlan
from mechanisms.clustering.starts import Margins, Trials, noisy_margins, renewed, spread
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.records import TableRecords
from mechanisms.noise.rate import Rate
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.clustering.test_clustering import clustering
from tests.unit.mechanisms.distances.tables import table
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, p_value

CLUSTERS, SIZE = 6, 30


def blobs() -> tuple[Dataset, TableRecords]:
    """A table of six clusters of 30 rows over twelve attributes.

    Each cell holds the number of its row's cluster, or a random value with probability 0.2.
    """
    rng = np.random.default_rng(4)
    own = np.repeat(np.arange(CLUSTERS), SIZE)
    codes = {
        f"x{number}": np.where(rng.random(own.size) < 0.2, rng.integers(0, 6, own.size), own)
        for number in range(12)
    }
    attributes = tuple(CategoricalAttribute(name, tuple("012345")) for name in codes)
    domain = TableDomain(attributes, max_rows=own.size)
    records = TableRecords({name: each.astype(np.uint8) for name, each in codes.items()}, {})
    return Dataset("blobs", NeighbouringRelation.ADD_REMOVE, domain), records


def plan_of(dataset: Dataset, **changes: Any) -> ClusteringPlan:
    assert isinstance(dataset.domain, TableDomain)
    plan = clustering("add_remove", metric=None)
    return replace(
        plan, dataset=dataset, attributes=dataset.domain.attributes, clusters=CLUSTERS, **changes
    )


def test_several_starts_reach_the_clusters_and_single_ones_do_not() -> None:
    """At a large loss the default is 32 starts, and the best of them finds the true clusters.

    A single start does not find them for every seed.
    """
    dataset, records = blobs()
    right = {True: 0, False: 0}
    for seed, several in product(range(2), right):
        plan = plan_of(dataset, starts=None if several else 1)
        loss = PrivacyLoss.parse("100000")
        assert plan.trials(loss).starts == (32 if several else 1)
        result = cluster(context(records, dataset, loss, SeededRandomness(seed)), plan)
        right[several] += sorted(result.centres.sizes.tolist()) == [SIZE] * CLUSTERS
    assert right[True] == 2
    assert right[False] < 2


def test_the_rule_takes_more_starts_at_a_larger_loss() -> None:
    dataset, _ = blobs()
    plan = plan_of(dataset)
    choices = plan.choices()
    assert [trials.starts for trials, _ in choices] == [1, 3, 8, 16, 32]
    assert all(before < after for (_, before), (_, after) in pairwise(choices))
    for trials, least in choices[1:]:
        # The least ε for more starts is that at which (1 + R)·releases/ε·√(2·axes)·clusters/rows is
        # one. There are R = 12 attributes and 72 axes.
        noise = 13 * plan.releases(trials) * NANO / least * (2 * 72) ** 0.5 * CLUSTERS / 180
        assert noise == pytest.approx(1.0)
        assert plan.trials(PrivacyLoss(least)) == trials
        assert plan.trials(PrivacyLoss(least - 1)).starts < trials.starts
    # If the request names the number of starts or the starting centres, the rule has nothing to
    # choose.
    assert plan_of(dataset, starts=7).choices() == [(Trials(7, 2), 0)]
    named = plan_of(dataset, initial=((0,) * 12,) * CLUSTERS)
    assert named.choices() == [(Trials(1, 0), 0)]
    assert named.releases(Trials(1, 0)) == 4
    assert isinstance(dataset.domain, TableDomain)
    rows = RULE_WORK // (12 * CLUSTERS * 9)
    large = replace(dataset, domain=replace(dataset.domain, max_rows=rows))
    assert [trials.starts for trials, _ in plan_of(large).choices()] == [1, 3]


@pytest.mark.parametrize("epsilon", ["0.001", "1", "7.000000001", "100000"])
@pytest.mark.parametrize("count", [None, 1, 5])
def test_steps_are_what_is_spent(epsilon: str, count: int | None) -> None:
    dataset, _ = blobs()
    plan, loss = plan_of(dataset, starts=count), PrivacyLoss.parse(epsilon)
    steps, trials = plan.steps(loss), plan.trials(loss)
    assert total(steps) == loss
    assert sum(step.times for step in steps) == plan.releases(trials)
    assert steps[0].what == "noisy counts of all values, to draw centres from"


@pytest.mark.parametrize("relation, moves", [("replace", 2), ("add_remove", 1)])
def test_noise_on_counts_covers_every_attribute(
    relation: str, moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record has one value of each of four attributes; a replacement changes two counts each."""
    dataset, records = table(relation)
    attributes = clustering(relation).attributes[:4]
    used: list[Rate] = []

    def without_noise(counts: Any, rate: Rate, *_: Any) -> Any:
        used.append(rate)
        return counts

    monkeypatch.setattr(starts, "noisy", without_noise)

    def vector(rows: TableRecords) -> Any:
        margins = noisy_margins(context(rows, dataset, PrivacyLoss(NANO)), attributes, moves)
        return np.concatenate(margins.counts)

    whole = vector(records)
    assert whole.tolist() == [
        n for a in attributes for n in np.bincount(records.codes[a.name], minlength=len(a.levels))
    ]
    if relation == "replace":
        codes = {name: each.copy() for name, each in records.codes.items()}
        for one in attributes:
            codes[one.name][0] = (codes[one.name][0] + 1) % len(one.levels)
    else:
        codes = {name: each[1:] for name, each in records.codes.items()}
    moved = np.abs(whole - vector(TableRecords(codes, {}))).sum()
    assert moved == moves * len(attributes)
    assert used[0] == Rate.of_counts(NANO, int(moved))


def test_records_are_drawn_in_proportion_to_positive_counts_plus_one() -> None:
    margins = Margins((np.array([7, -5, 1]), np.array([0])))
    source, seen = SeededRandomness(9).stream(), np.zeros(3, np.int64)
    for _ in range(2000):
        level, only = margins.record(source)
        assert only == 0
        seen[level] += 1
    assert p_value(seen, [8 / 11, 1 / 11, 2 / 11]) > FALSE_ALARM


def test_every_start_lies_around_the_mean_of_the_released_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset, records = blobs()
    assert isinstance(dataset.domain, TableDomain)
    encoding = one_hot(dataset.domain.attributes, 0)
    margins = Margins(tuple(np.array([5, -2, 0, 0, 3, 0]) for _ in encoding.attributes))
    middle = encoding.mean(margins.weights)
    assert np.allclose(middle, np.tile(np.array([6, 1, 1, 1, 4, 1]) / 14, 12))
    started: list[Any] = []

    def iteration(*called: Any) -> Centres:
        points = called[2]
        started.append(points)
        return Centres(points, np.full(CLUSTERS, 9), error=0)

    monkeypatch.setattr(starts, "iteration", iteration)
    source, again = (SeededRandomness(5).stream() for _ in range(2))

    def draw() -> Any:
        return encoding.point(margins.record(source))

    within = context(records, dataset, PrivacyLoss(NANO))
    starts.best_start(within, encoding, draw, middle, CLUSTERS, Trials(3, 1), 1)
    assert len(started) == 3
    for points in started:
        drawn = np.array([encoding.point(margins.record(again)) for _ in range(CLUSTERS)])
        assert np.allclose(points.mean(axis=0), middle)
        assert np.allclose(points - points[0], drawn - drawn[0])
        assert not np.allclose(points, drawn)


def test_clusters_without_records_get_new_centres() -> None:
    points = np.arange(8.0).reshape(4, 2)
    reached = Centres(points, np.array([90, 3, 4, -1]), error=3)
    fresh = iter(np.array([[-1.0, -2.0], [-3.0, -4.0]]))
    new = renewed(reached, lambda: next(fresh))
    assert new.points.tolist() == [[0, 1], [-1, -2], [4, 5], [-3, -4]]
    assert new.sizes.tolist() == [90, 3, 4, -1]
    # If the noise may hide the sizes of all clusters, none is known to be empty, so all centres are
    # kept.
    hidden = Centres(points, np.array([1, 2, 0, -1]), error=3)
    assert renewed(hidden, lambda: points[0]) is hidden


def test_the_spread_orders_starts_by_their_squared_distances() -> None:
    """Without noise it is a constant less the squared distances of rows to their centres."""
    dataset, records = blobs()
    assert isinstance(dataset.domain, TableDomain)
    encoding = one_hot(dataset.domain.attributes, 8)
    rows = np.stack([records.codes[a.name] for a in encoding.attributes], axis=1)
    points = np.array([encoding.point(row) for row in rows])
    rng, sums = np.random.default_rng(3), []
    for _ in range(5):
        labels = rng.integers(0, CLUSTERS, len(points))
        means = np.array([points[labels == c].mean(axis=0) for c in range(CLUSTERS)])
        reached = Centres(means, np.bincount(labels, minlength=CLUSTERS), error=0)
        sums.append(spread(reached) + ((points - means[labels]) ** 2).sum())
    assert np.allclose(sums, sums[0])
    assert spread(Centres(means, np.array([2, 1, 0]), error=5)) == 0.0
    # Every row is equally far from two equal centres.
    both = np.stack([means[0], means[0]])
    apart = partial_distances(encoding, both)
    assert np.allclose(apart[:, 0], apart[:, 1])
