"""The rival of the bench of joint selection has the law of its paper, sequence by sequence."""

from __future__ import annotations

from itertools import permutations
from math import exp, perm

import numpy as np
import pytest

from benchmarks.selections.joint_sequence import Sequences
from tests.unit.mechanisms.noise.chi_square import FALSE_ALARM, p_value

VALUES = np.array([0, 4, 2, 2, 5])


def loss_of(sequence: tuple[int, ...]) -> int:
    best = sorted(VALUES.tolist(), reverse=True)
    return int(max(c - VALUES[r] for c, r in zip(best, sequence, strict=False)))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_sequences_are_counted_by_their_loss(k: int) -> None:
    sequences = Sequences.of(VALUES, k)
    losses = [loss_of(one) for one in permutations(range(5), k)]
    counts = [sum(loss <= most for loss in losses) for most in range(len(sequences.reach))]
    assert counts[-1] == perm(5, k)
    assert np.exp(sequences.log_counts()) == pytest.approx(counts)


def test_a_sequence_is_drawn_by_its_loss() -> None:
    """3,000 draws against exp(−ε/2 · loss); a false alarm has probability 10⁻⁶."""
    k, epsilon, generator = 2, 0.8, np.random.default_rng(4)
    sequences = Sequences.of(VALUES, k)
    weights = {one: exp(-epsilon / 2 * loss_of(one)) for one in permutations(range(5), k)}
    seen = dict.fromkeys(weights, 0)
    for _ in range(3000):
        first, second = sequences.draw(epsilon, generator).tolist()
        seen[first, second] += 1
    law = np.array(list(weights.values())) / sum(weights.values())
    assert p_value(np.array(list(seen.values())), law) > FALSE_ALARM


def test_a_large_loss_draws_the_best_in_order() -> None:
    drawn = Sequences.of(VALUES, 2).draw(100.0, np.random.default_rng(0))
    assert drawn.tolist() == [4, 1]
