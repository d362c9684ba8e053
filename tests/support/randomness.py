"""Repeatable randomness. Only for tests: a seed that is known reveals every noise value."""

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
    """A fixed list of words, followed by zeros. Implements both protocols."""

    def __init__(self, words: list[int]) -> None:
        self._words = words
        #: The number of random words that were read so far.
        self.read = 0

    def stream(self) -> GivenWords:
        return self

    def words(self, count: int) -> Words:
        self.read += count
        head, self._words = self._words[:count], self._words[count:]
        return np.array(head + [0] * (count - len(head)), dtype=np.uint64)
