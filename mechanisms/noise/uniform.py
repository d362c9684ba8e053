"""A uniform whole number of any size, from one stream of words."""

from mechanisms.model.randomness import WordSource

_WORD = 64


def uniform(count: int, source: WordSource) -> int:
    """Exactly uniform on 0, …, count − 1; ``count`` may be private.

    A word more than needed is drawn, so a second draw has a probability below 2^−64. With fewer,
    the number of draws would follow from the count.
    """
    words = -(-count.bit_length() // _WORD) + 1
    every = 1 << _WORD * words
    while True:
        drawn = 0
        for word in source.words(words).tolist():
            drawn = drawn << _WORD | word
        if drawn < every - every % count:
            return drawn % count
