"""δ of one rate, and of several weighed together, walked and summed by runs of equal steps.

A rate of ten million records has as many steps. Each is a whole number over a falling divisor, so
that it stays the same for long runs of t: there are a few times 2^{g/2} runs, however many records.

*Members* are the rates of a candidate: int64 (members, 4), with |W|, the bits of its grid, its cap
and its part. Steps of one part are added up; the largest of the parts is δ.
"""

from __future__ import annotations

import numpy as np

from mechanisms.kernels.compiled import compiled
from mechanisms.model.sensitivity import Integers

#: No run ends here.
FOREVER = 1 << 62


@compiled
def step(hits: int, total: int, bits: int, replace: bool, cap: int, t: int) -> int:
    """δ(t) of one rate, in [1, cap]."""
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
    return max(1, min(cap, (unit - 1) // below + 1))


@compiled
def last_of_run(hits: int, total: int, bits: int, replace: bool, cap: int, t: int) -> int:
    """The last t' ≥ t with the same ``step``; ``FOREVER`` when there is no last."""
    value = step(hits, total, bits, replace, cap, t)
    if value >= cap or (total == 0 and not replace):
        return FOREVER
    # The smallest divisor at which ⌈unit / divisor⌉ is still the value.
    divisor = ((1 << bits) - 1) // value + 1
    fewer = min(hits, total - hits)
    if replace:
        return total - divisor if divisor > 1 else FOREVER
    if fewer == 0:
        return total + 1 - divisor if divisor > 2 else FOREVER
    if t >= fewer:
        return total - divisor if divisor > 2 else FOREVER
    needed = (((total - fewer) << bits) - 1) // value + 1
    left = int((1.0 + np.sqrt(1.0 + 4.0 * needed)) / 2.0)
    # The root in doubles is near the smallest number with left·(left − 1) ≥ needed.
    while left * (left - 1) >= needed:
        left -= 1
    while left * (left - 1) < needed:
        left += 1
    return min(fewer - 1, total - left)


@compiled
def combined(
    hits: Integers, totals: Integers, members: Integers, replace: bool, candidate: int, t: int
) -> int:
    """δ(t) of one candidate: the largest of the sums of its parts, which stand together."""
    first, largest = 0, 0
    while first < len(members):
        after, total = first, 0
        while after < len(members) and members[after, 3] == members[first, 3]:
            hit, of = hits[after, candidate], totals[after, candidate]
            bits, cap = members[after, 1], members[after, 2]
            total += members[after, 0] * step(hit, of, bits, replace, cap, t)
            after += 1
        largest = max(largest, total)
        first = after
    return largest


@compiled
def last_equal(
    hits: Integers, totals: Integers, members: Integers, replace: bool, candidate: int, t: int
) -> int:
    """A t' ≥ t up to which no member's step changes."""
    end = FOREVER
    for i in range(len(members)):
        hit, of = hits[i, candidate], totals[i, candidate]
        end = min(end, last_of_run(hit, of, members[i, 1], replace, members[i, 2], t))
    return end


@compiled
def steps(
    hits: Integers,
    totals: Integers,
    members: Integers,
    replace: bool,
    t: int,
    candidates: Integers,
) -> Integers:
    """δ(t) of the candidates with these numbers."""
    found = np.empty(len(candidates), np.int64)
    for i in range(len(candidates)):
        found[i] = combined(hits, totals, members, replace, candidates[i], t)
    return found


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
    short, t, before = 0, first, 0
    while t < last:
        width, end = combined(hits, totals, members, replace, candidate, t), t
        if width >= cap:
            break
        if width == before:
            # Steps begin to repeat: how long they do is worth finding out.
            end = min(last_equal(hits, totals, members, replace, candidate, t), last - 1)
        short += (end - t + 1) * (cap - width)
        before, t = width, end + 1
    return short


@compiled
def shortfalls(
    hits: Integers,
    totals: Integers,
    members: Integers,
    replace: bool,
    cap: int,
    horizon: int,
    kinds: Integers,
    turns: Integers,
    order: Integers,
) -> Integers:
    """K = Σ_{t < T} (cap − δ(t)) of every candidate.

    From its turn on δ of a candidate depends on its kind alone. ``order`` takes kinds one after
    another, each by falling turns, so that a sum goes on where the one before it began.
    """
    short = np.zeros(len(order), np.int64)
    tail, begun, kind = 0, horizon, -1
    for r in order:
        if kinds[r] != kind:
            tail, begun, kind = 0, horizon, kinds[r]
        turn = min(turns[r], horizon)
        tail += missing(hits, totals, members, replace, cap, r, turn, begun)
        short[r] = tail + missing(hits, totals, members, replace, cap, r, 0, turn)
        begun = turn
    return short


@compiled
def walk(
    hits: Integers,
    totals: Integers,
    members: Integers,
    replace: bool,
    cap: int,
    horizon: int,
    goals: Integers,
    order: Integers,
    largest_of: Integers,
) -> Integers:
    """``WalkedSensitivity`` of ``goals``, ascending in ``order``, each on its own steps.

    Where ``largest_of`` names candidates all walk on the largest of their δ, each from where the
    one before it stopped.
    """
    found = np.zeros((3, len(goals)), np.int64)
    together = len(largest_of) > 0
    t, passed = 0, 0
    for i in order:
        if not together:
            t, passed = 0, 0
        left, before = goals[i] - passed, 0
        while True:
            width, end = cap, FOREVER
            if t < horizon:
                width, end = 0, t
                for place in range(max(len(largest_of), 1)):
                    r = largest_of[place] if together else i
                    width = max(width, combined(hits, totals, members, replace, r, t))
                if width == before:
                    end = horizon - 1
                    for place in range(max(len(largest_of), 1)):
                        r = largest_of[place] if together else i
                        end = min(end, last_equal(hits, totals, members, replace, r, t))
            before, run = width, end - t + 1
            # Steps of the run that are passed in full: by division, for products may not fit.
            whole = (left - 1) // width if left > 0 else 0
            if whole < run:
                break
            t, passed, left = t + run, passed + run * width, left - run * width
        found[0, i], found[1, i], found[2, i] = t + whole, left - whole * width, width
        t, passed = t + whole, passed + whole * width
    return found
