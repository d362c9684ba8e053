"""The exact hockey-stick divergence of two Laplace laws, and published scales of noise."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import exp, inf, log

Law = tuple[float, float]
"""Location and rate (one over the scale)."""


def hockey_laplace(p: Law, q: Law, epsilon: float) -> float:
    """∫ max(p − e^ε·q, 0): the least δ with P(S) ≤ e^ε·Q(S) + δ for every S.

    ln p − ln q is linear between the two locations and beyond, so it crosses ε at most once in
    each of three parts; every part is integrated in closed form.
    """
    breaks = sorted({p[0], q[0]})
    parts = list(zip([-inf, *breaks], [*breaks, inf], strict=True))
    total = 0.0
    for low, high in parts:
        for a, b in _above(p, q, epsilon, low, high):
            total += max(_mass(p, a, b) - exp(epsilon) * _mass(q, a, b), 0.0)
    return total


def _above(p: Law, q: Law, epsilon: float, low: float, high: float) -> list[tuple[float, float]]:
    """The part of (low, high) in which the privacy loss is above ε."""
    inside = _inside(low, high)
    slope = _slope(p, inside) - _slope(q, inside)
    excess = _log_density(p, inside) - _log_density(q, inside) - epsilon
    if slope == 0:
        return [(low, high)] if excess > 0 else []
    root = inside - excess / slope
    if slope > 0:
        return [(max(low, root), high)] if root < high else []
    return [(low, min(high, root))] if root > low else []


def _inside(low: float, high: float) -> float:
    if low == -inf:
        return high - 1
    return low + 1 if high == inf else (low + high) / 2


def _slope(law: Law, x: float) -> float:
    return law[1] if x < law[0] else -law[1]


def _log_density(law: Law, x: float) -> float:
    return log(law[1] / 2) - law[1] * abs(x - law[0])


def _mass(law: Law, low: float, high: float) -> float:
    """P(low < X < high) for an interval on one side of the location."""

    def tail(x: float) -> float:
        return 0.0 if abs(x) == inf else 0.5 * exp(-law[1] * abs(x - law[0]))

    return abs(tail(low) - tail(high))


def worst(laws: Sequence[Law], pairs: Sequence[tuple[int, int]], epsilon: float) -> float:
    """The largest divergence over neighbours, in either direction."""
    return max(
        (hockey_laplace(laws[a], laws[b], epsilon) for i, j in pairs for a, b in ((i, j), (j, i))),
        default=0.0,
    )


def smooth_divergence(epsilon: float, beta: float, change: float = 1.0) -> float:
    """The worst pair of smooth sensitivity: S and e^β·S, both at least the change."""
    narrow, wide = (0.0, epsilon / 2 / change), (change, epsilon / 2 / change * exp(-beta))
    return max(hockey_laplace(narrow, wide, epsilon), hockey_laplace(wide, narrow, epsilon))


def local_sensitivity(values: Sequence[float], pairs: Sequence[tuple[int, int]]) -> list[float]:
    """The local sensitivity of each dataset of a universe."""
    largest = [0.0] * len(values)
    for i, j in pairs:
        change = abs(values[i] - values[j])
        largest[i], largest[j] = max(largest[i], change), max(largest[j], change)
    return largest


def printed_rates(
    changes: Sequence[float], pairs: Sequence[tuple[int, int]], growth: float, epsilon: float
) -> list[float]:
    """The published rule, applied from the largest level down.

    A level that is less than a factor ``growth`` below the next larger one takes over its λ. Any
    other level has the least of ε / 2LS and growth·λ of its larger neighbouring levels.
    """
    rates: dict[float, float] = {}
    next_larger = inf
    for level in sorted(set(changes), reverse=True):
        if next_larger / level < growth * (1 - 1e-12):
            rates[level] = rates[next_larger]
        else:
            above = _higher(changes, pairs, level)
            rates[level] = min([epsilon / (2 * level)] + [growth * rates[high] for high in above])
        next_larger = level
    return [rates[change] for change in changes]


def repaired_rates(
    changes: Sequence[float], pairs: Sequence[tuple[int, int]], growth: float, epsilon: float
) -> list[float]:
    """The obvious repair: the least of ε / 2LS and growth·λ over higher neighbouring levels."""
    rates: dict[float, float] = {}
    for level in sorted(set(changes), reverse=True):
        above = _higher(changes, pairs, level)
        rates[level] = min([epsilon / (2 * level)] + [growth * rates[high] for high in above])
    return [rates[change] for change in changes]


def _higher(changes: Sequence[float], pairs: Sequence[tuple[int, int]], level: float) -> set[float]:
    both = [*pairs, *((j, i) for i, j in pairs)]
    return {changes[j] for i, j in both if changes[i] == level and changes[j] > level}


def dijkstra_rates(
    changes: Sequence[float], pairs: Sequence[tuple[int, int]], growth: float, epsilon: float
) -> list[float]:
    """Exact smooth sensitivity by its definition, with distances between datasets."""
    rates = []
    for start in range(len(changes)):
        distance = {start: 0}
        queue = [(0, start)]
        while queue:
            steps, here = heappop(queue)
            for i, j in [*pairs, *((j, i) for i, j in pairs)]:
                if i == here and j not in distance:
                    distance[j] = steps + 1
                    heappush(queue, (steps + 1, j))
        smooth = max(changes[y] * growth**-d for y, d in distance.items())
        rates.append(epsilon / (2 * smooth))
    return rates


def printed_noisy_scale(shared: int, change: float, epsilon: float, delta: float) -> float:
    """The scale of noisy local sensitivity of two-triangles if both noise values are zero.

    Each part has a third of ε and of δ; the second-order bound is 4·ã.
    """
    third = epsilon / 3
    margin = log(3 / delta) / third
    second_order = 4 * (shared + margin)
    return (change + second_order * margin) / third
