"""Bounds on arrival times, from the leading bits of uniform variables.

The first 52 bits of a word are a whole number j, and u lies in [j, j + 1]·2⁻⁵². Both ends are
doubles, and an arrival is monotonous in u. So one end of u bounds it from below and the other from
above, each less or plus the errors of arithmetic. The bounds grant twice the proved errors.
"""

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.randomness import Words
from mechanisms.noise.logarithm import ERROR, logarithm

Floats = NDArray[np.float64]

_UNREAD = np.uint64(12)
#: The bits of the double 1.0. With 52 random bits j as its fraction, the double is 1 + j·2⁻⁵². So
#: subtracting 1 gives the uniform number j·2⁻⁵².
_ONE = np.float64(1.0).view(np.uint64)
_CELL = 2.0**-52
#: An arrival time has a random part x, which is one logarithm or two nested ones. Its error is
#: assumed to be at most this number times 1 + |x|. That is twice the proved error of the two
#: logarithms.
_LOGARITHM = 2.0 * ERROR
#: A bound on the relative error of each product, quotient, sum or logarithm from which the shift is
#: computed. The shift of an arrival time is its part without randomness.
_SHIFT = 2.0**-50


@compiled
def bounds_of_arrivals(
    shift: Floats,
    magnitude: Floats,
    gumbel: bool,
    upper: bool,
    widen: float,
    words: Words,
    out: Floats,
) -> None:
    """Write a bound on tᵢ for every uᵢ that begins with the bits of word i; it may be infinite.

    tᵢ = shift + ln(−ln uᵢ) with ``gumbel``, and tᵢ = shift + ln uᵢ without. The bounds are upper
    ones with ``upper``. ``magnitude`` bounds the sum of the absolute values of the shift's terms.
    ``widen`` ≥ 1 multiplies what is granted for errors.
    """
    side = 1.0 if upper else -1.0
    # The random whole number j tells that the uniform number u lies in [j, j + 1]·2⁻⁵². An upper
    # bound on the arrival time reads the end j + 1, and a lower bound reads j. With ``gumbel`` it
    # is the reverse, because ln(−ln u) falls with u.
    beyond = _CELL if upper != gumbel else 0.0
    for i in range(shift.size):
        end = np.uint64((words[i] >> _UNREAD) | _ONE).view(np.float64) - 1.0 + beyond
        time = logarithm(end)
        if gumbel:
            time = logarithm(-time)
        error = _LOGARITHM * (1.0 + abs(time)) + _SHIFT * magnitude[i]
        bound = shift[i] + time + side * widen * error
        endless = end == 0.0 or (gumbel and end == 1.0)
        out[i] = side * np.inf if endless else bound
