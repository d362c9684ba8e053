"""Where simulations take their random words from: of benchmarks alone, never of the service.

A process that is given a seed repeats its draws; any other draws as the service does. The service
has no such door: there a mechanism gets ``SystemRandomness`` and nothing else.
"""

from __future__ import annotations

import numpy as np

from mechanisms.model.randomness import Randomness, Words
from mechanisms.noise.keystream import SystemRandomness


class _Words:
    """One stream of words from a seed. Implements ``WordSource``."""

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._bits = np.random.PCG64DXSM(seed)

    def words(self, count: int) -> Words:
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)


class _Seeded:
    """The same streams, in the same order, for the same seed. Implements ``Randomness``."""

    def __init__(self, seed: int) -> None:
        self._seed = np.random.SeedSequence(seed)

    def stream(self) -> _Words:
        (child,) = self._seed.spawn(1)
        return _Words(child)


_source: Randomness = SystemRandomness()


def randomness() -> Randomness:
    """That of this process."""
    return _source


def seed(number: int) -> None:
    """From now on this process repeats the draws of this seed."""
    global _source
    _source = _Seeded(number)
