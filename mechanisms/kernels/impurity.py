"""δ of information gain and of Gini at every distance, its sums, and the dampened utility.

Both are min(Δ, max over a candidate's pairs (m, β) of c(M(t), Q(t))). ``rarest_class`` defines the
pairs, M and Q; ``utilities.entropy_table`` defines Ψ and Φ. In steps of 2^−g, c is
    information gain   Ψ[M + Q] − Ψ[Q] + 2t + 1, where 2t + 1 covers the rounding of Ψ
    Gini               ⌈2^{g+1}·M² / ((M + Q)(M + Q + 1))⌉
Arguments of Ψ stop at N − 1, N the public bound on rows. For t beyond the largest β, Q = 0 and the
pair with the largest M alone determines δ. The remaining sum over t is then a difference of Φ, or a
sum of ⌊2^{g+1}/k⌋ over runs of equal terms.
"""

from typing import NamedTuple

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.long_division import LIMIT
from mechanisms.kernels.radix import order_of
from mechanisms.model.following import follows_records
from mechanisms.model.sensitivity import Integers


class Curve(NamedTuple):
    """δ of all candidates, as the module defines it; Δ is ``cap`` and T is ``horizon``.

    ``sums`` is Φ[0 … N] for information gain and empty for Gini. ``bits`` is for Gini alone.
    ``replace`` is True for that relation. Kernels take it apart before their loops, because
    compiled code counts references whenever an array is read from a tuple.
    """

    offsets: Integers
    others: Integers
    rarest: Integers
    sums: Integers
    bits: int
    replace: bool
    cap: int
    horizon: int


@compiled
def gini_step(m: int, q: int, bits: int) -> int:
    """⌈2^{bits + 1}·m² / ((m + q)(m + q + 1))⌉ for 0 ≤ m + q < 2³⁰, and 0 for m = 0.

    The quotient is at most 2^{bits + 1} ≤ 2³³, so a double errs by less than one. The remainder
    fits 64 bits although its terms do not, and corrects the error.
    """
    if m == 0:
        return 0
    below = (m + q) * (m + q + 1)
    guess = int(float(m) * float(m) / float(below) * float(2 << bits))
    # The quotient is corrected by how far ``guess`` times the divisor exceeds the dividend. This
    # product and the dividend may overflow 64 bits and wrap around. Their difference is exact all
    # the same: it is at most twice the divisor in absolute value, so it fits 64 bits.
    over = guess * below - ((m * m) << (bits + 1))
    while over < 0:
        guess, over = guess + 1, over + below
    while over >= below:
        guess, over = guess - 1, over - below
    return guess


@compiled
def step(
    sums: Integers,
    bits: int,
    replace: bool,
    others: Integers,
    rarest: Integers,
    first: int,
    last: int,
    cap: int,
    t: int,
) -> int:
    """δ(t) of one candidate, whose pairs are ``first`` … ``last`` − 1.

    The other arguments are those of ``Curve``.
    """
    top = len(sums) - 2
    most = 0
    for pair in range(first, last):
        beta = rarest[pair]
        taken = min(t, beta)
        q = beta - taken
        m = others[pair] + t if replace else others[pair] + t - taken
        if top >= 0:
            end = min(m + q, top)
            most = max(most, (sums[end + 1] - sums[end]) - (sums[q + 1] - sums[q]) + 2 * t + 1)
        else:
            most = max(most, gini_step(m, q, bits))
        if most >= cap:
            return cap
    return max(most, 1)


@compiled
@follows_records(
    "a candidate is done at the cap",
    lambda curve: 4 * (len(curve.others) + len(curve.offsets)),
)
def steps(curve: Curve, t: int, candidates: Integers) -> Integers:
    """δ(t) of the candidates with these numbers."""
    offsets, others, rarest, sums, bits, replace, cap, _ = curve
    result = np.empty(len(candidates), np.int64)
    for i in range(len(candidates)):
        r = candidates[i]
        result[i] = step(sums, bits, replace, others, rarest, offsets[r], offsets[r + 1], cap, t)
    return result


@compiled
@follows_records(
    "up to the largest β, then runs of equal terms",
    lambda curve: (
        4 * (curve.horizon + 2) * (len(curve.others) + len(curve.offsets)) + (4 << curve.bits // 2)
    ),
)
def shortfalls(curve: Curve) -> Integers:
    """K = Σ_{t < T} (cap − δ(t)) of every candidate: a loop up to its largest β, then a closed
    form."""
    offsets, others, rarest, sums, bits, replace, cap, horizon = curve
    short = np.zeros(len(offsets) - 1, np.int64)
    starts = np.zeros(len(offsets) - 1, np.int64)
    ends = np.zeros(len(offsets) - 1, np.int64)
    for r in range(len(offsets) - 1):
        first, last = offsets[r], offsets[r + 1]
        turn, widest = 0, 0
        for pair in range(first, last):
            turn = max(turn, rarest[pair] + 1)
            widest = max(widest, others[pair] if replace else others[pair] - rarest[pair])
        t, missing = 0, 1
        while t < min(turn, horizon) and missing > 0:
            missing = cap - step(sums, bits, replace, others, rarest, first, last, cap, t)
            short[r] += missing
            t += 1
        if missing > 0 and t < horizon:
            if len(sums) > 1:
                short[r] += entropy_tail(sums, widest, cap, t, horizon)
            else:
                starts[r], ends[r] = widest + t + 1, widest + horizon
    add_harmonic_sums(2 << bits, starts, ends, cap, short)
    return short


@compiled
def add_harmonic_sums(
    unit: int, starts: Integers, ends: Integers, cap: int, short: Integers
) -> None:
    """Add to ``short`` the ``harmonic_sum`` of each candidate from its start to its end.

    A start of 0 means no sum. If the terms vanish before the end, sums differ in their starts
    alone. In falling order of the starts, each sum then extends the previous one.
    """
    total, previous = 0, 0
    # Each candidate needs a sum of terms from its ``start`` on. Candidates are visited from the
    # largest start to the smallest, so that each sum extends the previous one. The sort takes
    # unsigned keys in ascending order: no start reaches 2⁶², so the key 2⁶² − start is positive.
    for r in order_of((LIMIT - starts).view(np.uint64)):
        if starts[r] == 0:
            break
        if unit // (ends[r] + 1) > unit - cap:
            short[r] += harmonic_sum(unit, starts[r], ends[r], cap)
            continue
        total += harmonic_sum(unit, starts[r], previous - 1 if previous else ends[r], cap)
        previous = starts[r]
        short[r] += total


@compiled
def entropy_tail(phi: Integers, widest: int, cap: int, start: int, horizon: int) -> int:
    """Σ over start ≤ t < ``horizon`` of max(0, ``cap`` − Ψ[widest + t] − 2t − 1).

    This is Σ (Δ − δ(t)) of information gain for t so large that one pair alone, with M(t) = widest
    + t and Q = 0, determines δ(t). The docstring of the module defines Ψ, M and Q; ``cap`` is Δ.
    """
    top = len(phi) - 2
    low, high = start, horizon
    # Finds by bisection the first distance t at which the sensitivity δ(t) reaches its largest
    # value, the cap Δ. Later terms Δ − δ(t) of the sum are 0. δ grows with t, and reaches Δ at the
    # latest when widest + t, the count that determines it, is N − 1, where N is the bound on rows.
    while low < high:
        middle = (low + high) >> 1
        end = min(widest + middle, top)
        if phi[end + 1] - phi[end] + 2 * middle + 1 >= cap:
            high = middle
        else:
            low = middle + 1
    if low == start:
        return 0
    sums = phi[widest + low] - phi[widest + start]
    short: int = (low - start) * cap - sums - (low * low - start * start)
    return short


@compiled
def harmonic_sum(unit: int, first: int, last: int, cap: int) -> int:
    """Σ over first ≤ k ≤ last of max(0, cap − (unit − ⌊unit/k⌋)), by runs of equal terms.

    For Q = 0, the step of Gini at k = M + 1 is unit − ⌊unit/k⌋ with unit = 2^{g+1}. It takes fewer
    than 2·√unit different values.
    """
    total = 0
    k = first
    while k <= last:
        share = unit // k
        missing = cap - unit + share
        if missing <= 0:
            break
        end = min(unit // share, last) if share > 0 else last
        total += (end - k + 1) * missing
        k = end + 1
    return total


@compiled
@follows_records(
    "a walk ends at its goal",
    lambda curve, goals: 4 * (curve.horizon + 2) * (len(curve.others) + len(goals)),
)
def walk(curve: Curve, goals: Integers, order: Integers) -> Integers:
    """The result of ``SensitivityFunction.passed``: goal i on candidate i's steps, (3, goals).

    For a single candidate, all goals use its steps: in ``order`` they ascend, and each continues
    where the previous one stopped.
    """
    offsets, others, rarest, sums, bits, replace, cap, horizon = curve
    result = np.empty((3, len(goals)), np.int64)
    alone = len(offsets) == 2
    t, passed = 0, 0
    for i in order:
        r = 0 if alone else i
        if not alone:
            t, passed = 0, 0
        rest, width = goals[i] - passed, cap
        while t < horizon:
            width = step(sums, bits, replace, others, rarest, offsets[r], offsets[r + 1], cap, t)
            if rest <= width or width == cap:
                break
            passed, rest = passed + width, rest - width
            t += 1
        # Once the sensitivity δ(t) has reached its largest value, the cap, all further values equal
        # it. So a division gives how many more of them cover the rest of the goal, which the sum of
        # δ(0), δ(1), … is to reach.
        whole = (rest - 1) // cap if width == cap and rest > cap else 0
        result[0, i], result[1, i], result[2, i] = t + whole, rest - whole * cap, width
    return result
