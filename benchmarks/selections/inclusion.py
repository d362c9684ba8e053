"""Who is among k draws of the exponential mechanism without replacement: probabilities, no draws.

Draw r with weight w_r = exp(λ·s_r), k times, each time from those that are left. That is the order
of independent arrivals at rates w_r: r is drawn if at most k − 1 others come before it,

    P(r) = ∫ w_r·e^{−w_r·t}·P(at most k − 1 of the others by time t) dt.

The inner law is a product of n factors, of which the first k coefficients are kept; the integral
over log t is a sum of equal steps, whose error falls like e^{−π²/step}. All P(r) add up to k: how
far they miss it is what the numbers err by (``missed``).
"""

from collections.abc import Iterable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mechanisms.noise.rate import score_bits

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_STEP = 0.2
#: The most probability that may be lost at both ends of the integral and by candidates that are
#: left out.
_LOST = 1e-13
#: Candidates arrive at random times, and the first k to arrive are drawn. At a given time, a
#: candidate that has arrived with more than this probability is heavy. The code never divides by
#: its remaining probability, which may be near 0.
_HEAVY = 0.6
#: If more than k plus this many candidates are heavy, which means that each has probably arrived,
#: the chance that fewer than k have arrived is below 10⁻¹⁵.
_MANY = 100


def chances(scores: Numbers, epsilon: float, k: int, candidates: Numbers | None = None) -> Floats:
    """The same for scores on the grid of ``score_bits(k)``, each draw at ε/k."""
    return inclusion(scores, epsilon / k / 2.0 ** (score_bits(k) + 1), k, candidates)


def shares(scores: Numbers, epsilons: Iterable[float], k: int, candidates: Numbers) -> list[float]:
    """Of the k drawn, the expected share that are among the candidates, at each ε."""
    return [float(chances(scores, e, k, candidates).sum()) / k for e in epsilons]


def inclusion(scores: Numbers, rate: float, k: int, candidates: Numbers | None = None) -> Floats:
    """The chance of each of the candidates (all when None) to be among the k drawn.

    Of scores (n,), with weights exp(rate·score), 1 ≤ k ≤ n.
    """
    n = len(scores)
    if not 1 <= k <= n:
        raise ValueError(f"k must lie in 1 … {n}, got {k}")
    numbers = np.arange(n) if candidates is None else candidates
    if k == n:
        return np.ones(len(numbers))
    values, place, counts = np.unique(-scores, return_inverse=True, return_counts=True)
    places = place.ravel()[numbers]
    # If the log weights of two candidates differ by more than this, the larger is almost surely
    # drawn first. So wider gaps are cut to this one.
    widest = np.log(n * k / _LOST)
    steps = rate * np.diff(values, prepend=values[0]).astype(float)
    logs = -np.cumsum(np.minimum(steps, widest))
    last = np.searchsorted(np.cumsum(counts), k + 1)
    near = int(np.searchsorted(-logs, widest - logs[last], side="right"))
    logs, counts = logs[:near] - logs[last], counts[:near].astype(np.int64)
    start = np.log(_LOST) - logs[0] - np.log(np.exp(logs - logs[0]) @ counts)
    end = np.log(-np.log(_LOST))
    sought = np.zeros(len(values), np.bool_)
    sought[places] = True
    law = np.zeros(len(values))
    at = np.arange(start, end + _STEP, _STEP)
    law[:near] = _chances(logs, counts, at, k, sought[:near]) * _STEP
    return law[places]


def missed(chances: Floats, k: int) -> float:
    """How far the chances of all candidates are from adding up to k."""
    return abs(float(chances.sum()) - k)


@njit(cache=True)
def _chances(logs: Floats, counts: Numbers, times: Floats, k: int, sought: Flags) -> Floats:
    """Σ over log t of w·t·e^{−wt}·P(at most k − 1 others by t), of one of each group that is
    sought; log w falls."""
    groups = len(logs)
    law = np.zeros(groups)
    light, every, one, binomial = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for x in times:
        heavy, members = 0, 0
        while heavy < groups and -np.expm1(-np.exp(logs[heavy] + x)) > _HEAVY:
            members += counts[heavy]
            heavy += 1
        if members > k + _MANY:
            continue
        light[:] = 0.0
        light[0] = 1.0
        for j in range(heavy, groups):
            passed = np.exp(logs[j] + x)
            p = -np.expm1(-passed)
            if counts[j] == 1:
                for m in range(k - 1, 0, -1):
                    light[m] += p * (light[m - 1] - light[m])
                light[0] -= p * light[0]
            else:
                c = counts[j]
                binomial[0] = np.exp(-c * passed)
                for m in range(1, k):
                    binomial[m] = binomial[m - 1] * (c - m + 1) / m * p / (1 - p)
                for m in range(k - 1, -1, -1):
                    total = 0.0
                    for i in range(m + 1):
                        total += binomial[i] * light[m - i]
                    light[m] = total
        every[:] = light
        for h in range(heavy):
            _come(every, np.exp(logs[h] + x), counts[h])
        for j in range(heavy, groups):
            if not sought[j]:
                continue
            passed = np.exp(logs[j] + x)
            q = np.exp(-passed)
            before, total = 0.0, 0.0
            for m in range(k):
                before = (every[m] - (1 - q) * before) / q
                total += before
            law[j] += passed * q * total
        for h in range(heavy):
            passed = np.exp(logs[h] + x)
            # Such a candidate has almost surely arrived before this time, so its term is 0.
            if passed > 700 or not sought[h]:
                continue
            one[:] = light
            for other in range(heavy):
                _come(one, np.exp(logs[other] + x), counts[other] - (other == h))
            law[h] += passed * np.exp(-passed) * one.sum()
    return law


@njit(cache=True)
def _come(law: Floats, passed: float, count: int) -> None:
    """Multiply the law of how many have come by that of ``count`` alike, one by one."""
    q = np.exp(-passed)
    for _ in range(count):
        for m in range(len(law) - 1, 0, -1):
            law[m] = law[m] * q + law[m - 1] * (1 - q)
        law[0] *= q
