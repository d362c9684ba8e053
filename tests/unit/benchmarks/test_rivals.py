"""The rivals that benches remake from publications do what those say, without much noise."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.distances.published_clusters import (
    hashed_grid,
    one_hot,
    spread_centres,
    spread_lloyd,
)
from benchmarks.trees.rival_forest import DEPTH, TREES, leaf_of, predictions, trees_of_rows

NO_NOISE = 1e6
LEVELS = (2, 3, 2, 4, 2, 3)


def blobs(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Records near one of two that differ in every attribute, and which of the two."""
    rng = np.random.default_rng(1)
    which = rng.integers(0, 2, rows)
    records = np.stack([which * (size - 1) for size in LEVELS], axis=1)
    noisy = rng.random(records.shape) < 0.1
    return np.where(noisy, rng.integers(0, LEVELS, records.shape), records), which


@pytest.mark.parametrize("way", [spread_lloyd, hashed_grid])
def test_two_blobs_are_found_without_noise_and_lost_in_it(way: object) -> None:
    records, which = blobs(2000)
    codes = one_hot(records, LEVELS)

    def agreement(epsilon: float) -> float:
        centres = way(codes, LEVELS, 2, epsilon, np.random.default_rng(2))  # type: ignore[operator]
        assert centres.shape == (2, sum(LEVELS))
        nearest = ((codes[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
        return abs(float((nearest == which).mean()) - 0.5) * 2

    assert agreement(NO_NOISE) > 0.98
    assert agreement(1e-6) < 0.98


def test_spread_centres_differ_wherever_they_can() -> None:
    centres = spread_centres((2, 2, 2, 2, 2), 2, np.random.default_rng(1))
    assert (centres[0] * centres[1]).sum() == 0
    assert len(np.unique(spread_centres((2, 2), 4, np.random.default_rng(1)), axis=0)) == 4


def test_the_rival_forest_learns_classes_without_noise_and_guesses_in_it() -> None:
    records, which = blobs(3000)
    rng = np.random.default_rng(3)

    def right(epsilon: float) -> float:
        guess = predictions(records[:2000], which[:2000], records[2000:], LEVELS, 2, epsilon, rng)
        return float((guess == which[2000:]).mean())

    assert right(NO_NOISE) > 0.9
    assert np.mean([right(1e-6) for _ in range(30)]) < 0.75


def test_leaves_are_those_of_a_full_tree() -> None:
    inner = (1 << DEPTH) - 1
    features, thresholds = np.zeros(inner, np.int64), np.full(inner, 0.5)
    leaves = leaf_of(np.array([[0], [1]]), features, thresholds)
    assert leaves.tolist() == [0, (1 << DEPTH) - 1]


def test_a_record_more_moves_others_between_trees_of_the_rival() -> None:
    """The fault that its charge of ε leaves out: a change reaches more trees than one."""
    before, after = trees_of_rows(1000), trees_of_rows(1001)
    # The new record is the last one, so all other records keep their positions.
    moved = np.flatnonzero(before != after[:-1])
    assert len(np.unique(before[moved])) == TREES - 1
