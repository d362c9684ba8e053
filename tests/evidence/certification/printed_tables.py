"""Formulas of tables as the papers print them, for the checks to reject; the service uses none.

Values of Algorithm 3 are whole numbers on a grid of 2³² steps per bit, with the same rounded Ψ
as the formula in use. Values of rates are rationals.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath

from tests.evidence.certification.tables import Counts, information_gain, nearest_increment

BITS = 32


def psi(x: int) -> int:
    return nearest_increment(x, BITS)


def printed_cap(rows: int) -> int:
    """Δ as printed, log₂(N + 1) + 1/ln 2: safe, and above the exact ψ(N − 1)."""
    with mpmath.workdps(40):
        return int(mpmath.ceil((mpmath.log(rows + 1, 2) + 1 / mpmath.log(2)) * 2**BITS))


def algorithm_3(counts: Counts, t: int, rows: int) -> int:
    """Local Dampening, Algorithm 3: a level grows only while it has fewer than all |T| records.

    The guard ``a < τ`` takes τ = |T| from the records, so a level with all records cannot grow.
    """
    total = sum(map(sum, counts))
    return _largest(counts, t, rows, total)


def algorithm_3_without_guard(counts: Counts, t: int, rows: int) -> int:
    return _largest(counts, t, rows, rows * 10)


def algorithm_3_capped_by_the_table(counts: Counts, t: int, rows: int) -> int:
    """The exact value capped at ψ(|T| − 1), which is Δ for the private size of the table."""
    total = sum(map(sum, counts))
    return min(_largest(counts, t, rows, rows * 10), psi(max(total - 1, 0)))


def _largest(counts: Counts, t: int, rows: int, limit: int) -> int:
    best = 0
    for level in counts:
        fewest = min(level)
        others, rarest = sum(level) - fewest, max(fewest, 1) - 1
        taken = min(t, rarest)
        room = max(limit - (sum(level) - taken), 0)
        grown = others + min(t - taken, room)
        best = max(best, psi(grown + rarest - taken) - psi(rarest - taken))
    return min(best, printed_cap(rows))


def rounded_without_slack(pair: tuple[int, int], t: int, rows: int, bits: int, allowed: int) -> int:
    """The formula in use for one level and two classes, with ``allowed``·t + 1 for 2t + 1.

    A negative ``allowed`` leaves that term out.
    """
    fewest = min(pair)
    others, rarest = max(pair), max(fewest, 1) - 1
    taken = min(t, rarest)
    q = rarest - taken
    top = min(others + t - taken + q, rows - 1)
    value = nearest_increment(top, bits) - nearest_increment(q, bits)
    slack = allowed * t + 1 if allowed >= 0 else 0
    cap = nearest_increment(rows - 1, bits)
    return min(value + slack, cap) if t < rows else cap


def equation_2(counts: Counts) -> int:
    """Local Dampening, equation 2: −Σ τ_jc·log(τ_jc/τ_j), which is +τ·H(C|A)."""
    return -information_gain(counts, BITS)


def rate_section_6_2_3(hits: int, total: int, t: int, inclusive: bool) -> Fraction:
    """PrivPareto, section 6.2.3, with floors of 2 on TP′ and P′.

    It branches at t < P − TP; with ``inclusive`` at ≤, as in appendix A.2.
    """
    remaining = max(total - t, 2)
    misses = total - hits
    if t < misses or (inclusive and t == misses):
        positives = max(hits, 2)
        return Fraction(max(remaining - positives, 0), remaining * (remaining - 1))
    positives = max(hits - (t - misses), 2)
    return Fraction(positives, remaining * (remaining - 1))
