"""One-way rates, sets and noisy vectors: exact ratios of their laws on boxes of small scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.joint_influence import (
    EdgeInfluence,
    Exchange,
    Independent,
    JointInfluence,
    Together,
)
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate
from mechanisms.selection import SELECTORS
from mechanisms.selection.laws import (
    exponential_probabilities,
    one_shot_probabilities,
    peeled_probabilities,
    permute_and_flip_probabilities,
    subset_probabilities,
)
from mechanisms.selection.noisy_vector import NoisyVector
from mechanisms.selection.subset import Subset
from tests.support.randomness import SeededRandomness

P = Fraction(2, 5)
Scores = tuple[int, ...]
Law = Callable[[Scores], dict[tuple[int, ...], Fraction]]
Pairs = Iterator[tuple[Scores, Scores]]


def one_way(n: int, top: int) -> Pairs:
    """All score vectors of a box with all that are larger by at most one in each entry."""
    for here in product(range(top + 1), repeat=n):
        for moved in product((0, 1), repeat=n):
            there = tuple(s + c for s, c in zip(here, moved, strict=True))
            yield here, there
            yield there, here


def worst(law: Law, pairs: Pairs) -> Fraction:
    cached = cache(law)
    return max(
        chance / cached(there)[answer]
        for here, there in pairs
        for answer, chance in cached(here).items()
    )


def single(name: str) -> Law:
    laws = {
        "exponential": exponential_probabilities,
        "permute_and_flip": permute_and_flip_probabilities,
    }
    return lambda scores: {(r,): share for r, share in enumerate(laws[name](scores, P))}


ONE_WAY: dict[str, tuple[Law, int, int, int]] = {
    "exponential": (single("exponential"), 1, 3, 3),
    "permute_and_flip": (single("permute_and_flip"), 1, 3, 3),
    "one_shot": (lambda s: one_shot_probabilities(s, P, 2), 2, 3, 2),
    "peeled": (
        lambda s: peeled_probabilities(permute_and_flip_probabilities, s, P, 2), 2, 3, 2
    ),
    "race of two": (lambda s: peeled_probabilities(exponential_probabilities, s, P, 2), 2, 3, 2),
}  # fmt: skip


@pytest.mark.parametrize(("law", "k", "n", "top"), ONE_WAY.values(), ids=ONE_WAY)
def test_one_way_scores_cost_half_the_loss(law: Law, k: int, n: int, top: int) -> None:
    """λ = ε/k for scores that move by one: e^ε = p^−k, where two-way scores pay p^−2k."""
    assert worst(law, one_way(n, top)) <= P**-k
    assert worst(law, one_way(n, top)) > P ** -(k - 1)
    assert worst(law, both_ways(n, top)) > P**-k


def both_ways(n: int, top: int) -> Pairs:
    for here in product(range(1, top + 1), repeat=n):
        for moved in product((-1, 0, 1), repeat=n):
            yield here, tuple(s + c for s, c in zip(here, moved, strict=True))


def test_the_vector_of_one_way_permute_and_flip() -> None:
    law = permute_and_flip_probabilities((1, 0), Fraction(1, 2))
    assert law == [Fraction(3, 4), Fraction(1, 4)]


def test_the_one_way_rate_is_twice_the_other() -> None:
    assert Rate.of(7, 3, one_way=True).exponent() == 2 * Rate.of(7, 3).exponent()
    loss = PrivacyLoss(10**9)
    for selector in SELECTORS.values():
        bound = selector.accuracy(50, loss, 3, 0.95)
        assert selector.accuracy(50, loss, 3, 0.95, one_way=True) == bound / 2
        need = selector.loss_for(50, 2.0, 3, 0.95, one_way=True)
        assert selector.accuracy(50, need, 3, 0.95, one_way=True) <= 2.0


def moves(influence: JointInfluence) -> list[tuple[int, ...]]:
    """Every change of whole scores, up to one each, that ``influence`` allows."""
    return [c for c in product((-1, 0, 1), repeat=influence.count) if _allowed(c, influence)]


def _allowed(c: tuple[int, ...], influence: JointInfluence) -> bool:
    ups, downs = c.count(1), c.count(-1)
    match influence:
        case Together(moving=moving):
            return (ups, downs) in {(moving, 0), (0, moving)}
        case Exchange():
            return (ups, downs) == (1, 1)
        case Independent(both_ways=both):
            return both or not (ups and downs)
        case EdgeInfluence():
            # One changed edge moves the scores of its two ends, the first two nodes, in any
            # direction. The inner nodes all fall or all rise, and the others stay.
            inner = c[2 : 2 + influence.inner]
            return not any(c[2 + influence.inner :]) and not (1 in inner and -1 in inner)
    raise TypeError(influence)


INFLUENCES = {
    "degree": Together(4, 1, moving=2),
    "count": Together(4, 1, moving=1),
    "replaced count": Exchange(4, 1),
    "criterion": Independent(4, 1, both_ways=False),
    "anything": Independent(4, 1),
    "edge": EdgeInfluence(4, 1, inner=2, fall=1, rise=0),
}


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("influence", INFLUENCES.values(), ids=INFLUENCES)
def test_a_set_costs_the_spread(influence: JointInfluence, k: int) -> None:
    """λ = ε/ρ: e^ε = p^−ρ on all neighbours, and one step less of ρ is refused."""
    spread = influence.spread_of(k)
    law = cache(lambda scores: subset_probabilities(scores, P, k))
    steps = moves(influence)
    ratios = [
        chance / law(tuple(s + c for s, c in zip(here, moved, strict=True)))[chosen]
        for here in product((1, 2, 9), repeat=4)
        if list(here) == sorted(here)
        for moved in steps
        for chosen, chance in law(here).items()
    ]
    assert max(ratios) <= P**-spread
    if not isinstance(influence, EdgeInfluence) or k != 2:
        assert max(ratios) > P ** -(spread - 1)


def test_a_set_is_priced_and_drawn_by_its_influence() -> None:
    subset, loss = Subset(), PrivacyLoss(10**12)
    scores = np.arange(50) << 3
    influence = Together(50, 1 << 3, moving=2)
    assert [step.loss for step in subset.steps(loss, 4, influence)] == [loss]
    drawn = subset.top(scores, influence, loss, 4, SystemRandomness())
    assert drawn.tolist() == [46, 47, 48, 49]
    bound = subset.accuracy(loss, 4, influence, 0.95)
    assert subset.loss_for(bound, 4, influence, 0.95).epsilon_nano == pytest.approx(10**12, abs=2)
    assert subset.accuracy(loss, 50, influence, 0.95) == 0
    with pytest.raises(UnsupportedQuery, match="too many candidates"):
        subset.steps(loss, 1000, Together(10**6, 1, moving=2))


def test_the_bound_of_a_set_holds_for_its_law() -> None:
    influence, loss = Together(4, 1, moving=2), PrivacyLoss(3 * 10**9)
    p = Fraction(np.exp(-3 / influence.spread_of(2))).limit_denominator(10**6)
    bound = Subset().accuracy(loss, 2, influence, 0.8)
    for scores in product(range(0, 9, 2), repeat=4):
        missed = sum(
            chance
            for chosen, chance in subset_probabilities(scores, p, 2).items()
            if max(scores[j] for j in range(4) if j not in chosen)
            - min(scores[r] for r in chosen) > bound
        )  # fmt: skip
        assert missed <= 0.2


@pytest.mark.parametrize("influence", [Together(30, 1, moving=2), Exchange(30, 1)])
def test_intervals_of_a_noisy_vector_cover_every_candidate(influence: JointInfluence) -> None:
    """10,000 vectors at 90 %: the selected values, which lean upwards, are covered as well."""
    vector, loss, randomness = NoisyVector(), PrivacyLoss(10**9), SeededRandomness(11)
    scores = np.zeros(30, dtype=np.int64)
    error = vector.error(loss, influence, 0.9)
    missed = 0
    for _ in range(10_000):
        noisy = vector.top(scores, influence, loss, 3, randomness, Inline())
        assert (np.diff(noisy.values) <= 0).all()
        missed += bool((np.abs(noisy.values) > error).any())
    # The true rate of misses is at most 10 %. Then more than 1,150 misses in 10,000 vectors have a
    # probability below 10⁻⁶.
    assert missed <= 1150
    # The error is the least possible: with one step less, the union bound on misses of the 30
    # values exceeds 10 %.
    assert 2 * np.exp(-error / influence.total) / (1 + np.exp(-1 / influence.total)) * 30 > 0.1


def test_equal_noisy_scores_are_in_the_public_order() -> None:
    scores = np.array([5, 9, 9, 0, 9, 5])
    drawn = NoisyVector().top(
        scores, Together(6, 1, moving=1), PrivacyLoss(10**13), 4, SystemRandomness(), Inline()
    )
    assert drawn.indices.tolist() == [1, 2, 4, 0]
    assert drawn.values.tolist() == [9, 9, 9, 5]


def test_the_loss_for_an_error_of_a_vector_reaches_it() -> None:
    vector, influence = NoisyVector(), Together(1000, 1 << 10, moving=2)
    for error in (0.5, 30.0):
        loss = vector.loss_for(error, 5, influence, 0.95)
        assert vector.accuracy(loss, 5, influence, 0.95) <= error
        less = PrivacyLoss(loss.epsilon_nano - 1)
        assert vector.accuracy(less, 5, influence, 0.95) > error
