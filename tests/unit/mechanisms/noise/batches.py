"""Many selections at once from a seed: see ``tests.support.selections``."""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.noise.addition import Integers
from mechanisms.noise.rate import Rate
from tests.support import selections as fast
from tests.support.randomness import SeededRandomness
from tests.support.selections import brackets

__all__ = ["brackets", "noisy_max_winners", "race_winners"]


def noisy_max_winners(scores: Sequence[int], rate: Rate, rows: int, seed: int) -> Integers:
    return fast.noisy_max_winners(scores, rate, rows, SeededRandomness(seed))


def race_winners(scores: Sequence[int], rate: Rate, rows: int, seed: int) -> Integers:
    return fast.race_winners(scores, rate, rows, SeededRandomness(seed))
