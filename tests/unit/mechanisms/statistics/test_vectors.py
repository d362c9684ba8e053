"""Worked numbers: each was derived by hand or with many digits, apart from this code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.local_sensitivity import DistanceBound
from mechanisms.statistics.prefix_sum import CutOffBound, level_bound, local_changes
from mechanisms.statistics.quantile import Median, exact_share
from mechanisms.statistics.quantile_sensitivity import (
    AddRemoveBound,
    ReplaceBound,
    SortedNumbers,
    rank,
)
from mechanisms.statistics.release.ladder import ladder_probability, rungs
from mechanisms.statistics.smoothness import largest_beta
from mechanisms.statistics.stars import Stars
from mechanisms.statistics.statistic import Measurement
from mechanisms.statistics.sums import Mean
from mechanisms.statistics.triangles import Triangles, TwoTriangles
from tests.support.contexts import context
from tests.unit.mechanisms.statistics.worlds import (
    RELATIONS,
    REPLACE,
    graph,
    graph_dataset,
    table,
    table_dataset,
)

GRAPH = graph(5, [(0, 1), (0, 2), (1, 2), (2, 3)])
UNIVERSE = graph_dataset(5)


@pytest.mark.parametrize(
    ("epsilon", "delta", "published", "beta"),
    [
        ("0.5", "0.000001", 0.01723, 0.028744),
        ("1", "0.000001", 0.03446, 0.053007),
        ("1", "0.000000001", 0.02335, 0.031597),
        ("2", "0.000001", 0.06892, 0.097245),
        ("5", "0.0005", 0.30142, 0.405565),
    ],
)
def test_largest_beta(epsilon: str, delta: str, published: float, beta: float) -> None:
    loss = PrivacyLoss.parse(epsilon, delta)
    assert float(epsilon) / (2 * np.log(2 / float(delta))) == pytest.approx(published, abs=5e-6)
    assert largest_beta(loss.epsilon_nano, loss.delta_atto) == pytest.approx(beta, abs=6e-7)


def test_beta_without_delta_is_zero() -> None:
    assert largest_beta(NANO, 0) == 0
    assert 0 < largest_beta(10**6 * NANO, ATTO - 1) <= 64


def at(local: object, distances: Sequence[int]) -> list[int]:
    assert isinstance(local, DistanceBound)
    return local.at(np.array(distances)).tolist()


@pytest.mark.parametrize(
    ("statistic", "value", "bound"),
    [
        (Triangles(), 1, [1, 2, 2, 3]),
        (Stars(2), 5, [3, 4, 5, 6]),
        (Stars(3), 1, [3, 3, 4, 6]),
        (TwoTriangles(), 0, [1, 5, 9, 15]),
    ],
)
def test_local_sensitivities_of_the_small_graph(
    statistic: Triangles | Stars | TwoTriangles, value: int, bound: list[int]
) -> None:
    plan = statistic.plan(UNIVERSE, NANO)
    measured = statistic.measure(context(GRAPH, UNIVERSE), plan)
    assert (plan.exponent, measured.value) == (0, value)
    assert at(measured.local, range(4)) == bound


def test_the_small_graph_has_these_totals() -> None:
    most = {name: int(GRAPH.totals[f"{name}_maximum"][0]) for name in ("edge", "open")}
    assert most == {"edge": 1, "open": 1}
    assert GRAPH.totals["harvest"][0] == 2


def test_ladder_of_the_small_graph() -> None:
    measured = Triangles().measure(context(GRAPH, UNIVERSE), Plan(0, 3))
    assert isinstance(measured.local, DistanceBound)
    widths = rungs(measured.local)
    law = [ladder_probability(difference, widths, 1.0) for difference in range(-3, 4)]
    expected = [0.05539667, 0.05539667, 0.09133366, 0.15058375]
    assert law == pytest.approx([*expected, *expected[2::-1]], abs=1e-8)


NUMBERS = (10, 20, 30, 40, 50)


@dataclass(frozen=True)
class Whole:
    """Sorted numbers of a column whose public bounds are 0 and 100.

    ``window`` gives the bounds at the ranks before the first number and after the last.
    """

    numbers: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.numbers)

    def window(self, first: int, stop: int) -> Integers:
        beyond = {0: 0, self.count + 1: 100}
        values = [
            self.numbers[i - 1] if 1 <= i <= self.count else beyond[min(max(i, 0), self.count + 1)]
            for i in range(first, stop)
        ]
        return np.array(values, np.int64)


def test_smooth_median() -> None:
    replaced = ReplaceBound(Whole(NUMBERS), Fraction(1, 2), 100)
    assert replaced.smooth(0.1) == pytest.approx(60.653066, abs=1e-6)


@pytest.mark.parametrize(("s", "width", "beta"), [(0, 10, 1), (1, 20, 0.5), (2, 30, 0.35)])
def test_smooth_median_where_rows_come_and_go(s: int, width: int, beta: float) -> None:
    # At each of these β the smooth bound is the local sensitivity at the distance s, times
    # e^(−β·s). The small global sensitivity of 40 decides only at the last, smaller β.
    local = AddRemoveBound(Whole(NUMBERS), Fraction(1, 2), 40)
    assert local.smooth(beta) == pytest.approx(width * np.exp(-beta * s))
    assert local.smooth(0.1) == pytest.approx(40 * np.exp(-0.1 * 3))


@pytest.mark.parametrize(("rows", "distance"), [(20_000, 4096), (3_000, 2_999)])
def test_the_bound_where_rows_come_and_go_ends_at_a_public_distance(
    rows: int, distance: int
) -> None:
    # All numbers are equal, so the local sensitivity is 0 up to the public distance. From there on
    # the global sensitivity counts, and its damped value there is the smooth bound.
    cap, beta = 10**6, 1e-3
    ordered = SortedNumbers(np.full(rows, 5.0), 0, 0, cap)
    local = AddRemoveBound(ordered, Fraction(1, 2), cap)
    assert local.smooth(beta) == pytest.approx(cap * np.exp(-beta * distance), rel=1e-12)


@pytest.mark.parametrize("beta", [0.02, 0.1, 0.5, 1.5])
def test_smooth_median_at_every_beta(beta: float) -> None:
    # The local sensitivity LS(s) after s replacements is 10, 20, 70, 80, 80 and 100. For s = 2, the
    # numbers 40 and 50 become 100, and one more change moves the median from 30 to 100.
    replaced = ReplaceBound(Whole(NUMBERS), Fraction(1, 2), 100)
    padded = [0, 0, 0, 0, *NUMBERS, 100, 100, 100, 100]
    exact = [
        max(padded[6 + k] - padded[6 + k - s - 1] for k in range(min(s + 2, 7))) for s in range(6)
    ]
    assert exact[:4] == [10, 20, 70, 80]
    expected = max(width * np.exp(-beta * s) for s, width in enumerate(exact))
    assert replaced.smooth(beta) == pytest.approx(expected)


def test_ranks_are_those_of_decimals() -> None:
    # In doubles the product 0.07·100 is above 7, and rounding it up would give the rank 8.
    assert rank(*exact_share(0.07).as_integer_ratio(), 100) == 7
    assert rank(1, 2, 5) == 3
    assert rank(0, 1, 0) == rank(1, 1, 1) == 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_mean_of_no_record_is_the_middle_of_the_bounds(relation: NeighbouringRelation) -> None:
    mean, dataset = Mean("x"), table_dataset(relation, 0, -30.0, 70.0)
    released = []
    for part in mean.parts(dataset):
        plan = part.plan(dataset, NANO)
        released.append(part.measure(context(table([]), dataset), plan).value * plan.step)
    assert mean.answer(dataset, released) == 20
    # The noisy number of rows may be negative. So a noisy sum is divided by at least one.
    assert mean.answer(dataset, [Fraction(5), Fraction(-3)][: len(released)]) == 25


def test_exponential_median() -> None:
    # The bounds are divided into 10,000 cells per unit. So the one cell of a number itself hardly
    # changes the probability of the gap above it.
    unit, median = 10_000, Median("x")
    dataset = table_dataset(REPLACE, 5, 0.0, 100.0 * unit)
    cells = median.cells(dataset)
    assert len(cells) == 100 * unit + 1
    numbers = table([number * unit for number in NUMBERS])
    scores = median.rank_scores(context(numbers, dataset), cells)
    law = np.exp(scores / (2 * median.rank_sensitivity(dataset)))
    gaps = np.add.reduceat(law, [gap * unit for gap in (0, *NUMBERS)]) / law.sum()
    assert gaps == pytest.approx(
        [0.067870, 0.111899, 0.184490, 0.184490, 0.111899, 0.339351], abs=3e-6
    )


def test_prefix_sums() -> None:
    values = np.array([10, 20, 30, 100])
    changes = local_changes(values)
    assert changes.tolist() == [10, 20, 30, 100, 100]
    # This example is published. In a list of five values, the prefix of all five has one neighbour.
    # In a list of six values it has a second one, the prefix of all six.
    assert local_changes(np.array([1, 2, 3, 4, 69_624])).tolist()[5] == 69_624
    assert local_changes(np.array([1, 2, 3, 4, 69_624, 113_511])).tolist()[5] == 113_511
    smooth = [CutOffBound(changes, k).smooth(0.5) for k in range(1, 5)]
    assert smooth == pytest.approx([36.787944, 60.653066, 100, 100])
    levels = [
        level_bound(changes, np.arange(4), np.arange(1, 5), np.exp(0.5), k) for k in range(1, 5)
    ]
    assert levels == pytest.approx(smooth)


def test_measured_without_a_bound_is_just_a_value() -> None:
    assert Measurement(3).local is None
