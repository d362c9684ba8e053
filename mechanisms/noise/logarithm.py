"""The natural logarithm of a double, with a proved error: no logarithm of a library is trusted.

x = 2^e·m with m between √½ and √2, and ln m = 2·artanh s for s = (m − 1)/(m + 1), which is the
series 2s·(1 + s²/3 + s⁴/5 + …). The code takes eight terms. All further ones are positive and sum
to less than 2s·s¹⁶/(17·(1 − s²)), and |s| < 0.1716. Each operation of IEEE 754 errs by a factor
within 1 ± 2⁻⁵³, and m − 1 and e are exact. Together that is less than ``ERROR``·|ln x|; a test adds
it up in rationals.

There are no branches, so that the compiler works on several numbers at once.
Source: the series of Gregory, 1668; Higham 2002, Lemma 3.1, for the products of factors 1 ± 2⁻⁵³.
"""

import numpy as np

from mechanisms.kernels.compiled import compiled

#: A bound on the relative error of the logarithm, for 2⁻⁶⁰ ≤ x ≤ 2⁶⁰.
ERROR = 2.0**-44

_ONE = np.float64(1.0).view(np.uint64)
#: Let x = 2^e·m with 1 ≤ m < 2. Added to the bits of x, this constant carries into the exponent if
#: m ≥ √2. So x is split into a power of 2 and a factor between √½ and √2, where the series
#: converges fast.
_TO_NEXT_POWER = np.uint64(_ONE - np.float64(0.7071067811865476).view(np.uint64))
_FRACTION_BITS = np.uint64(52)
_BIAS = np.uint64(1023)
#: The bits of the double 2⁵². With a whole number below 2⁵² as its fraction, the double is 2⁵² plus
#: that number. So bit operations and a subtraction turn the exponent of x into a double.
_WHOLE = np.float64(2.0**52).view(np.uint64)
_WHOLE_AND_BIAS = 2.0**52 + 1023.0
_LN_2 = 0.6931471805599453


@compiled
def logarithm(x: float) -> float:
    """ln x, with an error of at most ``ERROR``·|ln x|, for 2⁻⁶⁰ ≤ x ≤ 2⁶⁰."""
    bits = np.float64(x).view(np.uint64)
    power = (bits + _TO_NEXT_POWER) >> _FRACTION_BITS
    e = np.uint64(power | _WHOLE).view(np.float64) - _WHOLE_AND_BIAS
    m = np.uint64(bits - ((power - _BIAS) << _FRACTION_BITS)).view(np.float64)
    # ``np.divide`` does not test whether the divisor is 0. The branch of such a test would keep the
    # compiler from computing several logarithms at once.
    s = np.divide(m - 1.0, m + 1.0)
    z = s * s
    tail = z * (1 / 15) + 1 / 13
    tail = tail * z + 1 / 11
    tail = tail * z + 1 / 9
    tail = tail * z + 1 / 7
    tail = tail * z + 1 / 5
    tail = tail * z + 1 / 3
    return e * _LN_2 + 2.0 * s * (1.0 + z * tail)  # type: ignore[no-any-return]
