"""The experiments of distances learn the metrics that the service would release.

The measures by which they evaluate these metrics and the clusterings have their known values.
"""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from benchmarks.data.tables import synthetic
from benchmarks.distances.metric_evaluation import (
    Repeated,
    Truth,
    adjusted_f,
    adjusted_rand,
    correlation,
    crossed,
    mutual_information,
    neighbour_accuracy,
    one_hot_points,
    squares,
    ward,
)
from benchmarks.reproduction.experiments.clusters import (
    K_MEANS,
    MEASURES,
    Sampled,
    clustered,
    k_means,
    rows_and_classes,
)
from benchmarks.reproduction.experiments.distances import ARMS, quality
from mechanisms.clustering.encoding import one_hot
from mechanisms.distances.learn import learn
from mechanisms.distances.plan import plan
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness

SMALL = Truth(synthetic("A", 0.2, rows=300))


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("target", ["x3", None])
def test_repeated_learning_is_the_service(arm: str, target: str | None) -> None:
    """The experiment and the service learn the same metric from the same seed.

    ``Repeated`` keeps its scores, so the second seed shows that kept scores give the same too.
    """
    public = plan(SMALL.table.dataset, ARMS[arm], target)
    repeated, loss = Repeated(SMALL, public), PrivacyLoss.parse("1.5")
    for seed in (1, 2):
        expected = learn(
            context(SMALL.table.records, public.dataset, loss, SeededRandomness(seed)), public
        )
        result = repeated.learn(loss, SeededRandomness(seed))
        assert [one.context for one in result] == [one.context for one in expected]
        for one, other in zip(result, expected, strict=True):
            assert (one.matrix == other.matrix).all()


def test_with_much_loss_every_arm_finds_what_it_aims_at() -> None:
    # The method for accounts in ρ is left out. Their ε is at most 1,000, at which noise still
    # decides between contexts of nearly equal scores.
    result = quality(SMALL, [1e5], 2, tuple(ARMS))
    for line in result["adjusted F"].values():
        assert line[0].tolist() == [1, 1]
    for line in result["correlation"].values():
        assert line[0].min() > 0.999


def test_clusters_of_tables_that_have_them_are_found() -> None:
    result = rows_and_classes(Sampled(SMALL), [1e5], 2)
    for measure in MEASURES:
        for line in result[measure].values():
            assert line[0].min() > 0.9
    found_too = k_means(SMALL, [1e5], 3)
    assert list(found_too) == ["learned", "one-hot", "metric without noise"]
    assert all(line[0].shape == (3, len(K_MEANS)) for line in found_too.values())
    codes = one_hot(SMALL.public.attributes, 16)
    # One of seven runs of k-means ends in a poor local optimum, so the best of ten is judged.
    # Centres that are pure noise have an adjusted Rand index of 0.19 ± 0.16.
    index, information, within = np.transpose(
        [clustered(SMALL.table, codes, 1e5) for _ in range(10)]
    )
    assert index.max() > 0.9
    assert information.max() > 0.9
    # The reference is the mean squared distance, per axis, of the rows from the means of their true
    # classes. Every axis has length 1.
    where, classes = one_hot_points(SMALL.table, np.arange(300)), SMALL.table.classes
    apart = [
        ((where[classes == c] - where[classes == c].mean(axis=0)) ** 2).sum() for c in range(3)
    ]
    assert within.min() == pytest.approx(sum(apart) / where.size, rel=0.02)
    noise = np.mean([clustered(SMALL.table, codes, 1e-3) for _ in range(10)], axis=0)
    assert noise[0] < 0.6
    assert noise[2] > within.min()


def test_random_contexts_have_an_adjusted_score_of_nothing() -> None:
    for true in ((0, 1, 2), (4,)):
        for size in (1, 3):
            scores = [adjusted_f(result, true, 7) for result in combinations(range(7), size)]
            assert np.mean(scores) == pytest.approx(0)
    assert adjusted_f((0, 1, 2), (0, 1, 2), 7) == 1
    assert adjusted_f((3, 4, 5), (0, 1, 2), 7) == pytest.approx(-0.75)
    assert adjusted_f((0, 1), (0, 1), 2) == 1


def test_correlation_is_pearsons() -> None:
    a, b = np.random.default_rng(1).random((2, 5, 5))
    upper = np.triu_indices(5, 1)
    assert correlation(a, b) == pytest.approx(np.corrcoef(a[upper], b[upper])[0, 1])
    assert correlation(a, 3 * a + 1) == pytest.approx(1)
    assert correlation(a, np.zeros((5, 5))) == 0


def test_the_adjusted_rand_index() -> None:
    true = np.array([0, 0, 1, 1, 2, 2])
    for renamed in permutations(range(3)):
        assert adjusted_rand(crossed(np.array(renamed)[true], true)) == pytest.approx(1)
    # The adjusted Rand index of Hubert and Arabie by hand: of 15 pairs of rows, 1 is together in
    # both clusterings, 2 in the result and 3 in the truth.
    result = np.array([1, 1, 2, 3, 3, 4])
    assert crossed(result, true).sum() == 6
    assert adjusted_rand(crossed(result, true)) == pytest.approx((1 - 0.4) / (2.5 - 0.4))
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, (200, 2, 60))
    assert np.mean([adjusted_rand(crossed(*two)) for two in labels]) == pytest.approx(0, abs=0.01)


def test_mutual_information_is_that_of_the_field() -> None:
    assert mutual_information(np.array([[5, 0], [0, 7]])) == pytest.approx(1)
    assert mutual_information(np.array([[2, 4], [3, 6]])) == pytest.approx(0)
    assert mutual_information(np.array([[4]])) == 1
    # The two partitions of four rows have the entropies ln 2 and (3/4)·ln(4/3) + (1/4)·ln 4. Their
    # joint entropy is (1/2)·ln 2 + ln 2.
    apart = 0.75 * np.log(4 / 3) + 0.25 * np.log(4)
    shared = np.log(2) + apart - 1.5 * np.log(2)
    result = mutual_information(np.array([[2, 0], [1, 1]]))
    assert result == pytest.approx(2 * shared / (np.log(2) + apart))


def test_ward_and_neighbours_see_two_heaps() -> None:
    rng = np.random.default_rng(1)
    classes = np.repeat([0, 1], 20)
    where = rng.normal(size=(40, 3)) + 20 * classes[:, None]
    apart = squares(where)
    assert apart[0, 7] == pytest.approx(((where[0] - where[7]) ** 2).sum())
    assert adjusted_rand(crossed(ward(apart, 2), classes)) == 1
    assert neighbour_accuracy(apart, classes) == 1
    assert neighbour_accuracy(apart, rng.integers(0, 2, 40)) < 0.9
    # Rows of a row's own fold, and so the row itself, do not vote on its class. So the only row of
    # a class is never classified correctly.
    alone = np.where(np.arange(40) == 8, 1, 0)
    assert neighbour_accuracy(squares(where), alone) == 1 - 1 / 40
