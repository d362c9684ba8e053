"""The packing bound of the bench of joint selection, on degrees that are worked out by hand."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from benchmarks.selections.joint import crossing, most_recall, packing
from benchmarks.selections.most_recall import most_recall_of_counts


def test_the_bound_takes_the_best_distance() -> None:
    """The bound is the largest over the numbers of edges by which outsiders may be lifted.

    The second of the best two nodes has 10 edges. One outsider needs 2 more to exceed it, and five
    outsiders need 4 at most.
    """
    degrees = np.array([20, 10, 9, 7, 7, 7, 7, 0])
    assert math.isclose(packing(degrees, 2), max(math.log(3) / 2, math.log(15) / 4))


def test_many_near_outsiders_ask_for_more() -> None:
    degrees = np.array([20, 10, *[9] * 50])
    assert math.isclose(packing(degrees, 2), math.log(150) / 2)


@pytest.mark.parametrize("k", [1, 2])
def test_the_most_recall_at_the_bound_is_that_of_the_bound(k: int) -> None:
    degrees = np.array([20, 10, 9, 7, 7, 7, 7, 0])
    assert math.isclose(most_recall(degrees, k, packing(degrees, k)), 1 - 1 / (4 * k))
    assert math.isclose(most_recall(degrees, k, 1e6), 1.0)


def test_recalls_cross_on_a_line_over_the_logarithm() -> None:
    assert crossing([1.0, 4.0, 16.0], [0.0, 0.5, 1.0], 0.75) == pytest.approx(8.0)
    # Measured recalls are sampled and may cross the goal several times. The last crossing counts.
    assert crossing([1.0, 4.0, 16.0], [0.9, 0.5, 1.0], 0.75) == pytest.approx(8.0)
    assert crossing([1.0, 4.0], [0.8, 0.9], 0.75) == 1.0
    assert crossing([1.0, 4.0], [0.8, 0.7], 0.75) is None


def best_recall(counts: tuple[int, ...], k: int, epsilon: float) -> float:
    """The most recall on one table of any private law of the k selected that treats values alike.

    A linear programme over the exact laws on all tables of as many records: probabilities that are
    private for all pairs under replace, and follow the values when two of them change places.
    """
    rows, values = sum(counts), len(counts)
    tables = [one for one in product(range(rows + 1), repeat=values) if sum(one) == rows]
    answers = list(combinations(range(values), k))
    place = {key: at for at, key in enumerate(product(tables, answers))}
    private, equal = [], []
    for table in tables:
        equal.append({place[table, answer]: 1.0 for answer in answers})
        for a, b in permutations(range(values), 2):
            moved = tuple(n - (v == a) + (v == b) for v, n in enumerate(table))
            renamed = {a: b, b: a}
            turned = tuple(table[renamed.get(v, v)] for v in range(values))
            for answer in answers:
                same = tuple(sorted(renamed.get(v, v) for v in answer))
                if (turned, same) != (table, answer):
                    equal.append({place[table, answer]: 1.0, place[turned, same]: -1.0})
                if min(moved) >= 0:
                    here, there = place[table, answer], place[moved, answer]
                    private.append({here: 1.0, there: -math.exp(epsilon)})
    goal = np.zeros(len(place))
    for answer in answers:
        goal[place[counts, answer]] = -sum(v < k for v in answer) / k
    sums = [float(len(row) == len(answers) and min(row.values()) > 0) for row in equal]
    zero = np.zeros(len(private))
    best = linprog(goal, dense(private, goal.size), zero, dense(equal, goal.size), sums)
    assert best.success
    return float(-best.fun)


def dense(rows: list[dict[int, float]], width: int) -> NDArray[np.float64]:
    matrix = np.zeros((len(rows), width))
    for at, row in enumerate(rows):
        for column, value in row.items():
            matrix[at, column] = value
    return matrix


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_private_law_that_treats_values_alike_has_more_recall(epsilon: float) -> None:
    for counts, k in (((4, 2, 1), 1), ((4, 3, 1), 2), ((5, 2), 1)):
        best = best_recall(counts, k, epsilon)
        for rivals in range(2, k + 2):
            assert best <= most_recall_of_counts(counts, k, epsilon, rivals) + 1e-6
    # If all values compete for a place among the selected, some private law attains the bound on
    # the recall.
    for counts in ((6, 2), (4, 3, 1), (3, 3, 1)):
        k = len(counts) - 1
        most = most_recall_of_counts(counts, k, epsilon, rivals=k + 1)
        assert best_recall(counts, k, epsilon) == pytest.approx(most)


@pytest.mark.parametrize(
    ("gap", "misses"),
    [(2, math.exp(-0.3) / 2), (8, math.exp(-1.2) / 2), (1, 1 / (1 + math.exp(0.3))),
     (7, math.exp(-0.9) / (1 + math.exp(0.3)))],
)  # fmt: skip
def test_two_rivals_are_told_apart_by_the_way_to_a_tie(gap: int, misses: float) -> None:
    """An even gap has a tie half way; of an odd one, one replacement turns the last step round."""
    assert most_recall_of_counts((gap, 0), 1, 0.3) == pytest.approx(1 - misses)


#: The numbers of records of the most frequent occupations in the data adult.
OCCUPATIONS = (6020, 6008, 5984, 5540, 5408, 4808)


def test_more_rivals_leave_less_recall_and_fewer_tables_more() -> None:
    finest = [most_recall_of_counts(OCCUPATIONS, 5, 0.0035, rivals, 12) for rivals in (2, 3)]
    assert finest[0] == pytest.approx(1 - math.exp(-1.05) / 10)
    assert finest[1] < finest[0] - 0.01
    with pytest.raises(ValueError, match="do not divide"):
        most_recall_of_counts(OCCUPATIONS, 5, 0.0035, 2, 7)
    assert finest[1] - 1e-7 <= most_recall_of_counts(OCCUPATIONS, 5, 0.0035, 3, 12, 8) < finest[0]


def test_no_mechanism_finds_occupations_under_replace_at_half_the_loss() -> None:
    assert most_recall_of_counts(OCCUPATIONS, 5, 0.0035, 5, unit=12, stride=20) < 0.949
