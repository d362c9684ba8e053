"""Randomness that can be repeated: for tests, and for nothing else."""

from __future__ import annotations

import numpy as np

from mechanisms.model.randomness import Words


class SeededWords:
    """One stream of words from a seed. Implements ``WordSource``."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._bits = np.random.PCG64DXSM(seed)

    def words(self, count: int) -> Words:
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)


class SeededRandomness:
    """Opens the same streams, in the same order, for the same seed. Implements ``Randomness``."""

    def __init__(self, seed: int) -> None:
        self._seed = np.random.SeedSequence(seed)

    def stream(self) -> SeededWords:
        (child,) = self._seed.spawn(1)
        return SeededWords(child)


class GivenWords:
    """Gives out the words that it was given, then zeros. Implements both protocols."""

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def stream(self) -> GivenWords:
        return self

    def words(self, count: int) -> Words:
        given, self._words = self._words[:count], self._words[count:]
        return np.array(given + [0] * (count - len(given)), dtype=np.uint64)
