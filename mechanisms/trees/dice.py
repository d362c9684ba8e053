"""Uniform choices from random words, by which trees are proposed without looking at records."""

from mechanisms.model.randomness import Randomness

_BLOCK = 4096


class Dice:
    """Exactly uniform whole numbers from one stream of words, by rejection."""

    def __init__(self, randomness: Randomness) -> None:
        self._source = randomness.stream()
        self._words: list[int] = []

    def below(self, n: int) -> int:
        """Uniform in [0, n), 1 ≤ n ≤ 2³²."""
        if n == 1:
            return 0
        bits = (n - 1).bit_length()
        while True:
            # The upper bits of a random word form a number. If it is n or more, it is rejected and
            # drawn again, so every number below n is equally likely.
            drawn = self._word() >> (64 - bits)
            if drawn < n:
                return drawn

    def coin(self) -> bool:
        """Heads with probability one half."""
        return self.below(2) == 1

    def _word(self) -> int:
        if not self._words:
            self._words = self._source.words(_BLOCK).tolist()
        return self._words.pop()
