"""The one primitive: a geometric variable from coins in 64-bit integers.

Danger: never drop the words of an interrupted draw. Long draws are large noise and are interrupted
more often, so a fresh start would be biased. When a block ends inside a draw, the position is
EXHAUSTED, and the draw is repeated *from its first word* on a longer block: the same stream, hence
the same law.

Every operand is ``uint64``: one signed operand would turn all into floats or signed integers,
depending on the compiler's version. ``u + b·v`` is never computed, because it leaves 64 bits.

Source: Canonne, Kamath, Steinke 2020, Algorithms 1 and 2.
"""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.randomness import Words

#: Returned instead of a position in the block of random words. EXHAUSTED says that the block ended
#: inside a draw, and OVERFLOW that the noise left its range.
EXHAUSTED = -1
OVERFLOW = -2

ZERO = np.uint64(0)
ONE = np.uint64(1)
# A geometric draw that counts this many successes returns OVERFLOW. The number must equal
# ``rate.LARGEST_RUN``.
_LARGEST_RUN = np.uint64(1024)


def mask(n: int) -> int:
    """The bits of n − 1, to which ``below`` reduces a word."""
    return (1 << (n - 1).bit_length()) - 1


@compiled
def below(n: np.uint64, mask: np.uint64, words: Words, at: int) -> tuple[np.uint64, int]:
    """A uniform draw from 0, …, n − 1, and the position of the next word; n = 1 reads no word."""
    if n == ONE:
        return ZERO, at
    while at < words.size:
        draw = words[at] & mask
        at += 1
        if draw < n:
            return draw, at
    return ZERO, EXHAUSTED


@compiled
def bernoulli_exp(
    u: np.uint64, b: np.uint64, mask: np.uint64, words: Words, at: int
) -> tuple[bool, int]:
    """True with probability exp(−u / b), for 0 ≤ u ≤ b.

    The k-th success has probability u / (b·k), drawn as u / b and 1 / k so that b·k is never
    computed. The parity of the number of successes has the law of the alternating series.
    """
    k = ONE
    small = ZERO  # The bit mask of the numbers below k, which gains bits as k grows.
    while True:
        draw, at = below(b, mask, words, at)
        if at < 0:
            return False, at
        if draw >= u:
            break
        draw, at = below(k, small, words, at)
        if at < 0:
            return False, at
        if draw != ZERO:
            break
        if k > small:
            small = (small << ONE) | ONE
        k += ONE
    return (k & ONE) == ONE, at


@compiled
def quotient(u: np.uint64, v: np.uint64, a: np.uint64, b: np.uint64) -> np.uint64:
    """⌊(u + b·v) / a⌋ for u < b and v < 1024, within the range that ``Rate`` checks."""
    return v * (b // a) + (u + v * (b % a)) // a


@compiled
def geometric(
    a: np.uint64, b: np.uint64, mask: np.uint64, words: Words, at: int
) -> tuple[np.uint64, int]:
    """G ≥ 0 with P(G ≥ g) = exp(−g·a / b), and the position of the next unread word.

    The position is EXHAUSTED if the block ends inside the draw. It is OVERFLOW, with probability
    e⁻¹⁰²⁴, if G would leave its range. Both depend on the words alone.
    """
    while True:
        u, at = below(b, mask, words, at)
        if at < 0:
            return ZERO, at
        accepted, at = bernoulli_exp(u, b, mask, words, at)
        if at < 0:
            return ZERO, at
        if accepted:
            break
    v = ZERO
    while True:
        more, at = bernoulli_exp(ONE, ONE, ZERO, words, at)
        if at < 0:
            return ZERO, at
        if not more:
            return quotient(u, v, a, b), at
        v += ONE
        if v >= _LARGEST_RUN:
            return ZERO, OVERFLOW
