"""The source of random words: an argument of every mechanism, never a global.

In production the words come from the operating system, or from a ChaCha20 keystream under a key
that it made for this stream alone (``mechanisms.noise.keystream``). Nobody can choose or recover
that key.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]


class WordSource(Protocol):
    """One endless stream of independent uniform 64-bit words."""

    def words(self, count: int) -> Words:
        """The next ``count`` words of the stream, shape (count,)."""
        ...


class Randomness(Protocol):
    """Opens independent streams: one for each draw and each thread."""

    def stream(self) -> WordSource: ...
