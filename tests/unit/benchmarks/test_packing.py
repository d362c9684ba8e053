"""The packing bound of the bench of joint selection, on degrees that are worked out by hand."""

from __future__ import annotations

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from benchmarks.selections.defaults import most_recall_of_counts
from benchmarks.selections.joint import crossing, most_recall, packing


def test_the_bound_takes_the_best_distance() -> None:
    """The second of two has 10 edges. One outsider is lifted by 2 edges, five by 4."""
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
    # The last time counts, because recalls are sampled.
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
        most = most_recall_of_counts(counts[k - 1] - counts[k], k, epsilon)
        assert best_recall(counts, k, epsilon) <= most + 1e-6
    # Of two values some law attains it, so one replacement less or more would be wrong.
    assert best_recall((6, 2), 1, epsilon) == pytest.approx(most_recall_of_counts(4, 1, epsilon))


def test_occupations_of_adult_under_replace() -> None:
    """The fifth and the sixth have 5,408 and 4,808 records."""
    assert most_recall_of_counts(600, 5, 0.0035) == pytest.approx(1 - math.exp(-1.05) / 10)
    assert most_recall_of_counts(600, 5, 0.0035) == pytest.approx(0.9650, abs=5e-5)
