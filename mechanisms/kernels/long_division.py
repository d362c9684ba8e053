"""⌊2^q · a / b⌋ of many pairs (a, b), exactly, where the product 2^q · a would leave 64 bits.

The whole part comes first. The q fractional bits follow by long division, one doubling each, so no
intermediate value exceeds 2b: 2^q · (a div b) + ⌊2^q · (a mod b) / b⌋.
"""

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.sensitivity import Integers

#: Public bounds keep the absolute value of every utility, sum and score strictly below this. So the
#: sum of two of them fits 64 bits.
LIMIT = 1 << 62


def scaled_floor(numerators: Integers, denominators: Integers | int, bits: int) -> Integers:
    """⌊2^bits · a / b⌋ for each pair, in the shape of ``numerators``; negative a rounds down as
    well.

    Exact for 0 < b < 2⁶², |a| < 2⁶³ and results below 2⁶³. Callers ensure this by public bounds.
    """
    below = np.broadcast_to(np.asarray(denominators, dtype=np.int64), numerators.shape)
    quotients = np.empty(numerators.shape, dtype=np.int64)
    _divide(np.ascontiguousarray(numerators), np.ascontiguousarray(below), bits, quotients)
    return quotients


@compiled
def _divide(numerators: Integers, denominators: Integers, bits: int, quotients: Integers) -> None:
    for i in range(numerators.size):
        a, b = numerators[i], denominators[i]
        whole, rest = abs(a) // b, abs(a) % b
        for _ in range(bits):
            rest += rest
            carry = np.int64(rest >= b)
            rest -= b * carry
            whole += whole + carry
        # The result is a floor, so a negative quotient rounds away from zero: ⌊−x⌋ = −⌈x⌉.
        quotients[i] = whole if a >= 0 else -(whole + np.int64(rest != 0))
