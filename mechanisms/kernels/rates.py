"""δ of one rate, or of a weighted sum of rates, walked and summed by runs of equal steps.

δ(t) of a rate over ten million records varies up to t of that size. Each value is a whole number
over a divisor that falls with t, rounded up to steps of 2^−g. So it stays equal for long runs of t:
there are a few times 2^{g/2} runs for any number of records.
"""

from typing import NamedTuple

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.following import follows_records
from mechanisms.model.sensitivity import Integers

#: Stands for the last distance t of a run of equal sensitivities δ(t) that never ends.
FOREVER = 1 << 62
#: The number of consecutive distances t for which the sensitivity δ(t) is computed at a time.
BLOCK = 64


class Rates(NamedTuple):
    """δ of n candidates, each of one or more rates: the largest sum of one of its parts.

    ``hits`` ≤ ``totals``, int64 (members, n), totals · 2^bits < 2⁶². ``members`` int64 (members, 4)
    has the factor |W|, bits, cap and part of each; the members of a part are consecutive. Under
    add/remove a part has one member, because a record has one class. Kernels take it apart before
    their loops, because compiled code counts references whenever an array is read from a tuple.
    """

    hits: Integers
    totals: Integers
    members: Integers
    replace: bool
    cap: int
    horizon: int


@compiled
def step(hits: int, total: int, bits: int, replace: bool, cap: int, t: int) -> int:
    """δ(t) of one rate in steps of 2^−bits, in [1, cap]."""
    unit = 1 << bits
    if replace:
        below = max(total - t, 1)
    elif total == 0:
        below = 2
    else:
        fewer = min(hits, total - hits)
        if fewer == 0:
            below = max(total - t + 1, 2)
        elif t < fewer:
            unit = (total - fewer) << bits
            below = (total - t) * (total - t - 1)
        else:
            below = max(total - t, 2)
    # The quotient ⌈unit / below⌉ of two integers is computed from doubles, which divide faster.
    # Their quotient is below 2⁵⁰ and errs by less than a half. Rounded down, it is never too large
    # and at most two too small. So two corrections make it exact.
    quotient = int(float(unit) / float(below))
    quotient += quotient * below < unit
    quotient += quotient * below < unit
    return max(1, min(cap, quotient))


@compiled
def last_of_run(hits: int, total: int, bits: int, replace: bool, cap: int, t: int) -> int:
    """The last t' ≥ t with the same ``step``; ``FOREVER`` if there is no last one."""
    value = step(hits, total, bits, replace, cap, t)
    if value >= cap or (total == 0 and not replace):
        return FOREVER
    # The sensitivity δ(t) is ⌈unit / divisor⌉, and the divisor falls as t rises. This is the
    # smallest divisor that gives the same δ(t), so the run of equal values ends there.
    divisor = ((1 << bits) - 1) // value + 1
    fewer = min(hits, total - hits)
    if replace:
        return total - divisor if divisor > 1 else FOREVER
    if fewer == 0:
        return total + 1 - divisor if divisor > 2 else FOREVER
    if t >= fewer:
        return total - divisor if divisor > 2 else FOREVER
    needed = (((total - fewer) << bits) - 1) // value + 1
    remaining = int((1.0 + np.sqrt(1.0 + 4.0 * needed)) / 2.0)
    # ``remaining`` is the number of records left at the last distance of a run of equal
    # sensitivities: the smallest whole number with remaining·(remaining − 1) ≥ needed. It was
    # computed in doubles and may be slightly off, so both loops correct it.
    while remaining * (remaining - 1) >= needed:
        remaining -= 1
    while remaining * (remaining - 1) < needed:
        remaining += 1
    return min(fewer - 1, total - remaining)


@compiled
def widen(
    hits: Integers,
    totals: Integers,
    members: Integers,
    replace: bool,
    candidate: int,
    t: int,
    widths: Integers,
) -> None:
    """Raise ``widths``, int64 (m,), to at least δ(t), …, δ(t + m − 1) of one candidate.

    δ is the largest sum of a part. The members of a part are consecutive.
    """
    inside = np.zeros(len(widths), np.int64)
    for i in range(len(members)):
        if i > 0 and members[i, 3] != members[i - 1, 3]:
            inside[:] = 0
        hit, total = hits[i, candidate], totals[i, candidate]
        factor, bits, cap = members[i, 0], members[i, 1], members[i, 2]
        for j in range(len(widths)):
            inside[j] += factor * step(hit, total, bits, replace, cap, t + j)
            # The rates of a weighted sum are divided into parts, and one change of the records
            # moves only the rates of one part. So δ is the largest of the sums over the rates of a
            # part. No term is negative, so the sum over the first rates of a part never exceeds the
            # whole sum and may be compared too.
            widths[j] = max(widths[j], inside[j])


@compiled
def last_equal(
    hits: Integers, totals: Integers, members: Integers, replace: bool, candidate: int, t: int
) -> int:
    """A t' ≥ t up to which the step of no member changes."""
    end = FOREVER
    for i in range(len(members)):
        hit, of = hits[i, candidate], totals[i, candidate]
        end = min(end, last_of_run(hit, of, members[i, 1], replace, members[i, 2], t))
    return end


@compiled
@follows_records(
    "the steps of rates without misses have another form",
    lambda rates, candidates: 2 * rates.hits.size + len(candidates) + 2,
)
def steps(rates: Rates, t: int, candidates: Integers) -> Integers:
    """δ(t) of the candidates with these numbers."""
    hits, totals, members, replace, _, _ = rates
    result = np.zeros(len(candidates), np.int64)
    for i in range(len(candidates)):
        widen(hits, totals, members, replace, candidates[i], t, result[i : i + 1])
    return result


@compiled
def missing(
    hits: Integers,
    totals: Integers,
    members: Integers,
    replace: bool,
    cap: int,
    candidate: int,
    first: int,
    last: int,
) -> int:
    """Σ over first ≤ t < last of cap − δ(t) of one candidate."""
    short, t, block = 0, first, np.empty(BLOCK, np.int64)
    while t < last:
        widths = block[: min(BLOCK, last - t)]
        widths[:] = 0
        widen(hits, totals, members, replace, candidate, t, widths)
        end = t + len(widths)
        if widths[0] < widths[-1]:
            short += len(widths) * cap - widths.sum()
        elif widths[0] < cap:
            end = min(max(last_equal(hits, totals, members, replace, candidate, t) + 1, end), last)
            short += (end - t) * (cap - widths[0])
        else:
            break
        t = end
    return short


@compiled
@follows_records(
    "sums are taken by runs of equal steps",
    lambda rates: 8 * (rates.horizon + 2) * rates.hits.size,
)
def shortfalls(rates: Rates, kinds: Integers, turns: Integers, order: Integers) -> Integers:
    """K = Σ_{t < T} (cap − δ(t)) of every candidate.

    Here T is the horizon. From t = ``turns[r]`` on, δ of candidate r depends on ``kinds[r]`` alone.
    ``order`` lists one kind after another, each by falling turns, so each sum extends the previous
    one.
    """
    hits, totals, members, replace, cap, horizon = rates
    short = np.zeros(len(order), np.int64)
    tail, tail_start, kind = 0, horizon, -1
    for r in order:
        if kinds[r] != kind:
            tail, tail_start, kind = 0, horizon, kinds[r]
        turn = min(turns[r], horizon)
        tail += missing(hits, totals, members, replace, cap, r, turn, tail_start)
        short[r] = tail + missing(hits, totals, members, replace, cap, r, 0, turn)
        tail_start = turn
    return short


@compiled
@follows_records(
    "a walk ends at its goal",
    lambda rates: 8 * (rates.horizon + 2) * rates.hits.size,
)
def walk(rates: Rates, goals: Integers, order: Integers, largest_of: Integers) -> Integers:
    """The result of ``SensitivityFunction.passed``: goal i on candidate i's steps, (3, goals).

    ``order`` lists the goals in ascending order. If ``largest_of`` names candidates, all goals use
    the largest of their δ, and each continues where the previous one stopped.
    """
    hits, totals, members, replace, cap, horizon = rates
    result = np.zeros((3, len(goals)), np.int64)
    block, everyone = np.empty(BLOCK, np.int64), np.arange(len(goals))
    t, passed = 0, 0
    for i in order:
        measured = largest_of
        if len(largest_of) == 0:
            t, passed, measured = 0, 0, everyone[i : i + 1]
        rest = goals[i] - passed
        while True:
            width, run, size = cap, FOREVER, min(BLOCK, horizon - t)
            if size > 0:
                widths, run = block[:size], horizon - t
                widths[:] = 0
                for r in measured:
                    widen(hits, totals, members, replace, r, t, widths)
                if widths[0] < widths[-1]:
                    place = 0
                    while place < size and widths[place] < rest:
                        rest -= widths[place]
                        place += 1
                    t += place
                    if place == size:
                        continue
                    width = widths[place]
                    break
                # The sensitivity δ(t) never falls as t grows, and its values at the first and the
                # last distance of this block are equal. So all values between them are equal too.
                width = widths[0]
                for r in measured:
                    end = last_equal(hits, totals, members, replace, r, t)
                    run = min(run, max(end - t + 1, size))
            # The next ``run`` terms δ(t) all equal ``width``. ``whole`` is how many of them leave
            # the sum of all terms below its goal, the number that it is to reach. A division
            # computes it, because a product of their number and ``width`` could leave 64 bits.
            whole = min((rest - 1) // width, run) if rest > 0 else 0
            t, rest = t + whole, rest - whole * width
            if whole < run:
                break
        passed = goals[i] - rest
        result[0, i], result[1, i], result[2, i] = t, rest, width
    return result
