"""The law of noisy local sensitivity: of both hidden bounds and of the answer, together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.noise.addition import Integers
from mechanisms.noise.rate import Rate
from mechanisms.statistics.grid import rate_at_most
from mechanisms.statistics.release.noisy_local import margin, second_order

Floats = NDArray[np.float64]
cached_margin = cache(margin)
#: The numbers of one dataset on which the law depends: the statistic f, the largest number a_max of
#: common neighbours of two nodes, and the local sensitivity LS.
State = tuple[int, int, int]


@dataclass(frozen=True)
class Rules:
    """The public facts, and two choices with which tests build a wrong mechanism."""

    loss: PrivacyLoss
    #: ``most``: the largest bound on how far one change moves the local sensitivity. ``cap``: the
    #: largest local sensitivity.
    most: int
    cap: int
    margin: Callable[[Rate, int], int] = cached_margin
    second_order: Callable[[int, int], int] = second_order

    @property
    def share(self) -> Fraction:
        return Fraction(self.loss.epsilon_nano, 3 * NANO)


@cache
def bounds_law(state: State, rules: Rules) -> tuple[list[int], Floats]:
    """The distinct B, ascending, and P(B, L̃), shape (len(B), cap): L̃ = 1 … cap."""
    _, shared, change = state
    rate = rate_at_most(rules.share)
    centre = shared + rules.margin(rate, rules.loss.delta_atto)
    # The second-order bound B (on how far one change moves the local sensitivity) is the same for
    # all values below ``reach``, and the same for all above.
    reach = np.arange(-1, rules.most + 1)
    mass: dict[int, float] = {}
    for place, chance in zip(reach.tolist(), masses(reach - centre, rate), strict=True):
        bound = rules.second_order(place, rules.most)
        mass[bound] = mass.get(bound, 0.0) + chance
    seconds = sorted(mass)
    bounds = np.arange(1, rules.cap + 1)
    table = []
    for second in seconds:
        rate = rate_at_most(rules.share / second)
        centre = change + rules.margin(rate, rules.loss.delta_atto)
        table.append(mass[second] * masses(bounds - centre, rate))
    return seconds, np.array(table)


def masses(noise: Integers, rate: Rate) -> Floats:
    """P(⌊Laplace⌋ = …) of consecutive numbers; the first and last include the tails."""
    upto = cumulative(noise, rate)
    upto[-1] = 1.0
    chances: Floats = np.diff(upto, prepend=0.0)
    return chances


def cumulative(noise: Integers, rate: Rate) -> Floats:
    """P(⌊Laplace⌋ ≤ …)."""
    tail = float(rate.exponent()) * (noise + 1)
    half = 0.5 * np.exp(-np.abs(tail))
    return np.where(tail < 0, half, 1 - half)


def divergence(p: State, q: State, rules: Rules) -> float:
    """∫ max(P − e^ε·Q, 0) of both bounds and the answer: an upper bound for the answer alone."""
    seconds, here = bounds_law(p, rules)
    others, there = bounds_law(q, rules)
    assert seconds == others
    rates = float(rules.share) / np.arange(1, rules.cap + 1)
    move = abs(p[0] - q[0]) * rates
    # If the noisy bounds are equal, the answers on the datasets p and q have Laplace laws of one
    # rate. So the logarithm of the ratio of their probabilities lies between −move and move.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(3 * rules.share) + np.log(there) - np.log(here)
    ratio = np.where(here > 0, np.where(there > 0, ratio, -np.inf), np.inf)
    inside = -np.expm1((np.clip(ratio, -move, move) - move) / 2)
    parts = np.where(ratio >= move, 0.0, np.where(ratio <= -move, -np.expm1(ratio), inside))
    return float((here * parts).sum())


def answer_law(state: State, rules: Rules, answers: Integers) -> Floats:
    """P(answer) for each of the answers."""
    _, table = bounds_law(state, rules)
    law = np.zeros(len(answers))
    for bound, mass in enumerate(table.sum(axis=0), start=1):
        rate, noise = rate_at_most(rules.share / bound), answers - state[0]
        law += mass * (cumulative(noise, rate) - cumulative(noise - 1, rate))
    return law
