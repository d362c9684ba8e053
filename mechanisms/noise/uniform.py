"""A uniform whole number of any size, from one stream of words."""

from mechanisms.model.randomness import WordSource

_WORD = 64


def uniform(count: int, source: WordSource) -> int:
    """Exactly uniform on 0, …, count − 1: words are cut to the needed bits and redrawn if too
    large."""
    bits = max((count - 1).bit_length(), 1)
    words = -(-bits // _WORD)
    while True:
        drawn = 0
        for word in source.words(words).tolist():
            drawn = drawn << _WORD | word
        drawn &= (1 << bits) - 1
        if drawn < count:
            return drawn
