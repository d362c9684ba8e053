"""The benchmarks of distances measure the service, and their verdicts fail when a sign flips."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from benchmarks import distance_comparison, distances
from benchmarks.context_quality import Arm, arms, held, quality
from benchmarks.metric_clusters import at_chance, clustered, k_means, rows_and_classes
from benchmarks.metric_evaluation import (
    Truth,
    adjusted_f,
    adjusted_rand,
    correlation,
    crossed,
    interval,
    neighbour_accuracy,
    share_found,
    squares,
    verdict,
    ward,
)
from benchmarks.repeated_learning import Repeated
from benchmarks.tables import synthetic
from mechanisms.clustering.encoding import one_hot
from mechanisms.distances.learn import learn
from mechanisms.distances.options import Context, Options
from mechanisms.distances.plan import plan
from mechanisms.model.executor import Inline
from tests.support.data import data_file
from tests.support.randomness import SeededRandomness

SMALL = Truth(synthetic("A", 0.2, rows=300))


@pytest.mark.parametrize("arm", arms(), ids=lambda arm: arm.name)
@pytest.mark.parametrize("target", ["x3", None])
def test_repeated_learning_is_the_service(arm: Arm, target: str | None) -> None:
    """One seed, one metric: the second time too, when scores are known."""
    public = plan(SMALL.table.dataset, arm.options, target)
    repeated, loss = Repeated(SMALL, public), PrivacyLoss.parse("1.5")
    for seed in (1, 2):
        wanted = learn(SMALL.table.records, public, loss, SeededRandomness(seed), Inline())
        found = repeated.learn(loss, SeededRandomness(seed))
        assert [one.context for one in found] == [one.context for one in wanted]
        for one, other in zip(found, wanted, strict=True):
            assert (one.matrix == other.matrix).all()


def test_with_much_loss_every_arm_finds_what_it_aims_at() -> None:
    found = quality(SMALL, [1e5], 2)
    for line in found["adjusted F"].values():
        assert line[0].tolist() == [1, 1]
    for line in found["correlation"].values():
        assert line[0].min() > 0.999


def test_clusters_of_tables_that_have_them_are_found() -> None:
    found = rows_and_classes(SMALL, [1e5], 2)
    for measure in ("Ward", "5-NN"):
        for line in found[measure].values():
            assert line[0].min() > 0.9
    found_too = k_means(SMALL, [1e5], 3)
    assert list(found_too) == ["learned", "one-hot", "metric without noise"]
    assert all(line[0].shape == (3,) for line in found_too.values())
    codes = one_hot(SMALL.public.attributes, 16)
    # One in seven ends in a poor optimum. Centres of noise alone agree by 0.19 ± 0.16.
    assert max(clustered(SMALL.table, codes, 1e5) for _ in range(10)) > 0.9
    noise = [clustered(SMALL.table, codes, 1e-3) for _ in range(10)]
    assert float(np.mean(noise)) < 0.6


def test_random_contexts_have_an_adjusted_score_of_nothing() -> None:
    for true in ((0, 1, 2), (4,)):
        for size in (1, 3):
            scores = [adjusted_f(found, true, 7) for found in combinations(range(7), size)]
            assert np.mean(scores) == pytest.approx(0)
    assert adjusted_f((0, 1, 2), (0, 1, 2), 7) == 1
    assert adjusted_f((3, 4, 5), (0, 1, 2), 7) == pytest.approx(-0.75)
    assert adjusted_f((0, 1), (0, 1), 2) == 1
    assert share_found((0, 3, 4), (0, 1, 2)) == pytest.approx(1 / 3)


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
    # Hubert and Arabie by hand: 1 pair together in both, 2 and 3 in each, of 15.
    found = np.array([1, 1, 2, 3, 3, 4])
    assert crossed(found, true).sum() == 6
    assert adjusted_rand(crossed(found, true)) == pytest.approx((1 - 0.4) / (2.5 - 0.4))
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, (200, 2, 60))
    assert np.mean([adjusted_rand(crossed(*two)) for two in labels]) == pytest.approx(0, abs=0.01)


def test_ward_and_neighbours_see_two_heaps() -> None:
    rng = np.random.default_rng(1)
    classes = np.repeat([0, 1], 20)
    where = rng.normal(size=(40, 3)) + 20 * classes[:, None]
    apart = squares(where)
    assert apart[0, 7] == pytest.approx(((where[0] - where[7]) ** 2).sum())
    assert adjusted_rand(crossed(ward(apart, 2), classes)) == 1
    assert neighbour_accuracy(apart, classes) == 1
    assert neighbour_accuracy(apart, rng.integers(0, 2, 40)) < 0.9
    # A row's own fold, and so the row itself, has no vote.
    alone = np.where(np.arange(40) == 8, 1, 0)
    assert neighbour_accuracy(squares(where), alone) == 1 - 1 / 40


def test_intervals_are_students() -> None:
    values = np.array([0.0, 1.0] * 15)
    assert interval(values) == pytest.approx((0.5, 2.7564 * values.std(ddof=1) / 30**0.5), rel=1e-4)
    assert interval([1.0]) == (1.0, float("inf"))


@pytest.mark.parametrize(
    ("gain", "strict", "good", "word"),
    [
        ((1.0, 0.5), True, True, "holds"),
        ((0.1, 0.5), True, True, "open"),
        ((-0.1, 0.5), True, True, "open"),
        ((-0.1, 0.5), False, True, "holds"),
        ((0.0, 0.0), False, True, "holds"),
        ((-1.0, 0.5), True, False, "FAILS"),
        ((-1.0, 0.5), False, False, "FAILS"),
    ],
)
def test_a_flip_beyond_its_interval_fails(
    gain: tuple[float, float],
    strict: bool,
    good: bool,
    word: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verdict("x", gain, strict) is good
    assert word in capsys.readouterr().out


RISING, FALLING = [0.1, 0.5, 0.9], [0.9, 0.5, 0.1]


def line(means: list[float], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [mean + 0.05 * rng.normal(size=30) for mean in means]


@pytest.mark.parametrize(
    ("name", "measure", "arm", "means", "good"),
    [
        ("cmc", "adjusted F", "max_relevance local", RISING, True),
        ("cmc", "adjusted F", "max_relevance local", [0.5, 0.5, 0.5], True),
        ("cmc", "adjusted F", "max_relevance local", FALLING, False),
        ("cmc", "adjusted F", "baseline mean_su", FALLING, False),
        ("cmc", "adjusted F", "mean_su", FALLING, True),
        ("cmc", "correlation", "mean_su", FALLING, False),
        ("cmc", "correlation", "max_dependency global", FALLING, False),
        ("cmc", "correlation", "max_dependency global", [0.0, 0.1, 0.2], True),
        ("soybean", "correlation", "max_dependency global", [0.0, 0.1, 0.2], False),
        ("dermatology", "correlation", "mean_su", [0.0, 0.1, 0.2], False),
        ("dermatology", "correlation", "mean_su", RISING, True),
        ("dermatology", "correlation", "mean_su", [0.3, 0.7, 0.9], True),
    ],
)
def test_verdicts_on_metrics_fail_when_signs_flip(
    name: str, measure: str, arm: str, means: list[float], good: bool
) -> None:
    scores = {
        each: {one.name: line(RISING) for one in arms()} for each in ("adjusted F", "correlation")
    }
    assert held(name, scores)
    scores[measure][arm] = line(means, 1)
    assert held(name, scores) is good


EVEN = dict.fromkeys(
    ("exact − printed", "dampened − exact", "correlation, exact − printed"), (0.0, 0.01)
)


@pytest.mark.parametrize(
    ("name", "epsilon", "what", "gain", "good"),
    [
        ("nltcs", 0.5, "exact − printed", -0.1, False),
        ("acs", 2.5, "exact − printed", -0.1, False),
        ("mushroom", 1.0, "exact − printed", -0.1, False),
        ("mushroom", 0.25, "exact − printed", -0.1, True),
        ("cmc", 1.0, "exact − printed", -0.1, True),
        ("nltcs", 0.05, "dampened − exact", -0.1, False),
        ("soybean", 2.5, "dampened − exact", -0.1, False),
        ("soybean", 2.5, "dampened − exact", -0.005, True),
        ("dermatology", 0.1, "correlation, exact − printed", -0.1, False),
        ("dermatology", 0.1, "correlation, exact − printed", 0.1, True),
        ("nltcs", 0.1, "correlation, exact − printed", float("nan"), True),
    ],
)
def test_verdicts_on_the_comparison_fail_when_signs_flip(
    name: str, epsilon: float, what: str, gain: float, good: bool
) -> None:
    assert distance_comparison.held(name, epsilon, EVEN)
    gains = {**EVEN, what: (gain, 0.01)}
    assert distance_comparison.held(name, epsilon, gains) is good


def test_chance_is_said() -> None:
    assert at_chance([np.array([0.01, -0.01])])
    assert not at_chance([np.array([0.0]), np.array([0.2])])


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", distances.CONTEXT_TABLES)
def test_real_tables_meet_the_expectations(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(distances, "RESULTS", tmp_path)
    folder = data_file(f"{name}.csv.gz").parent
    assert distances.main(["--data", str(folder), "--quick", "--tables", name]) == 0


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", distance_comparison.NAMES)
def test_ours_is_above_the_printed_algorithm(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(distance_comparison, "RESULTS", tmp_path)
    folder = data_file(f"{name}.csv.gz").parent
    arguments = ["--data", str(folder), "--times", "10", "--tables", name]
    assert distance_comparison.main(arguments) == 0


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("worse", ["exact", "dampened"])
def test_the_comparison_rejects_arms_that_change_places(
    worse: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A seeded mistake on real rows: the printed algorithm under the name of ours."""
    honest: Callable[..., dict[int, tuple[int, ...]]] = distance_comparison.Comparison.contexts
    other = {worse: "printed", "printed": worse}

    def swapped(self: object, arm: str, epsilon: float) -> dict[int, tuple[int, ...]]:
        return honest(self, other.get(arm, arm), epsilon)

    monkeypatch.setattr(distance_comparison, "RESULTS", tmp_path)
    monkeypatch.setattr(distance_comparison.Comparison, "contexts", swapped)
    folder = data_file("nltcs.csv.gz").parent
    arguments = ["--data", str(folder), "--times", "5", "--tables", "nltcs"]
    assert distance_comparison.main(arguments) == 1


def test_every_arm_has_three_attributes_and_three_tenths() -> None:
    for arm in arms():
        assert arm.options.context_share * 10 == 3
        assert arm.options.context_size == 3 or arm.options == Options(Context.MEAN_SU)
