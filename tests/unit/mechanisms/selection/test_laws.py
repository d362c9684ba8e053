"""The laws of selection as rationals: equal in all derivations, private on small boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.selection.laws import (
    OrderedLaw,
    exponential_probabilities,
    one_shot_probabilities,
    peeled_probabilities,
    permute_and_flip_probabilities,
)
from tests.unit.mechanisms.noise import oracles

P = Fraction(2, 5)
Scores = tuple[int, ...]
OrderedLaw = Callable[[Sequence[int]], OrderedLaw]

bases = st.fractions(min_value="1/50", max_value="49/50", max_denominator=50)


def vectors(longest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(-3, 4), min_size=1, max_size=longest)


@settings(deadline=None)
@given(scores=vectors(5), p=bases)
def test_permute_and_flip_is_geometric_noisy_max(scores: list[int], p: Fraction) -> None:
    law = permute_and_flip_probabilities(scores, p)
    assert sum(law) == 1
    assert law == oracles.by_all_orders(scores, p)
    assert law == oracles.by_geometric_argmax(scores, p)
    assert law == [one_shot_probabilities(scores, p, 1)[(r,)] for r in range(len(scores))]


def test_ties_to_the_lowest_index_are_another_law() -> None:
    for scores in [(0, 0), (0, 0, 0), (7, 1, 1)]:
        assert oracles.by_lowest_index(scores, P) != permute_and_flip_probabilities(scores, P)


@settings(deadline=None, max_examples=40)
@given(scores=vectors(4), p=bases, data=st.data())
def test_one_shot_is_the_largest_of_geometric_noise(
    scores: list[int], p: Fraction, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(scores)))
    law = one_shot_probabilities(scores, p, k)
    assert sum(law.values()) == 1
    for answer, probability in law.items():
        assert probability == oracles.one_shot_by_cells(answer, scores, p)


def test_one_shot_is_not_the_peeled_law() -> None:
    peeled = peeled_probabilities(permute_and_flip_probabilities, [0, 1, 2], P, 2)
    assert sum(peeled.values()) == 1
    assert peeled != one_shot_probabilities([0, 1, 2], P, 2)


@given(scores=vectors(5), p=bases)
def test_the_exponential_law_is_proportional(scores: list[int], p: Fraction) -> None:
    law = exponential_probabilities(scores, p)
    assert sum(law) == 1
    assert all(
        law[i] * p ** scores[i] == law[j] * p ** scores[j]
        for i in range(len(scores))
        for j in range(i)
    )


def test_peeling_the_exponential_law_is_plackett_luce() -> None:
    weights = [P**-s for s in (0, 2, 1)]
    law = peeled_probabilities(exponential_probabilities, (0, 2, 1), P, 3)
    assert law[(1, 0, 2)] == weights[1] / sum(weights) * weights[0] / (weights[0] + weights[2])


def one_draw(law: Callable[[Sequence[int], Fraction], list[Fraction]]) -> OrderedLaw:
    return lambda scores: {(r,): share for r, share in enumerate(law(scores, P))}


def peeled(law: Callable[[Sequence[int], Fraction], list[Fraction]], k: int) -> OrderedLaw:
    return lambda scores: peeled_probabilities(law, scores, P, k)


def one_shot(k: int) -> OrderedLaw:
    return lambda scores: one_shot_probabilities(scores, P, k)


#: Selection laws by name, each with k, the number of candidates n, the largest score, and D, the
#: most that a change moves a score. The last value is True if some scores attain the bound p^(−2kD)
#: on the ratio of probabilities.
BOXES = {
    "permute_and_flip, n=2, D=1": (one_draw(permute_and_flip_probabilities), 1, 2, 5, 1, True),
    "permute_and_flip, n=2, D=3": (one_draw(permute_and_flip_probabilities), 1, 2, 8, 3, True),
    "permute_and_flip, n=3, D=2": (one_draw(permute_and_flip_probabilities), 1, 3, 4, 2, True),
    "permute_and_flip, n=4, D=1": (one_draw(permute_and_flip_probabilities), 1, 4, 3, 1, True),
    "exponential, n=2, D=2": (one_draw(exponential_probabilities), 1, 2, 6, 2, False),
    "exponential, n=4, D=1": (one_draw(exponential_probabilities), 1, 4, 3, 1, False),
    "one_shot, n=3, k=2, D=1": (one_shot(2), 2, 3, 4, 1, True),
    "one_shot, n=3, k=2, D=2": (one_shot(2), 2, 3, 4, 2, True),
    "one_shot, n=4, k=2, D=1": (one_shot(2), 2, 4, 2, 1, True),
    "one_shot, n=4, k=3, D=1": (one_shot(3), 3, 4, 2, 1, True),
    "peeled permute_and_flip, n=3, k=2": (
        peeled(permute_and_flip_probabilities, 2),
        2,
        3,
        4,
        1,
        False,
    ),
    "peeled exponential, n=3, k=2": (peeled(exponential_probabilities, 2), 2, 3, 4, 1, False),
}


@pytest.mark.parametrize(("law", "k", "n", "top", "moved", "attained"), BOXES.values(), ids=BOXES)
def test_neighbours_differ_by_the_loss_at_most(
    law: OrderedLaw, k: int, n: int, top: int, moved: int, attained: bool
) -> None:
    """All score vectors of a box against all that differ by at most D each, in any directions."""
    worst = worst_ratio(law, n, top, moved)
    bound = P ** (-2 * k * moved)
    assert worst == bound if attained else worst < bound
    # The bound is tight: the same check would reject a bound that is smaller by the factor p.
    assert worst > bound * P


def test_ties_to_the_lowest_index_would_be_as_private() -> None:
    law = one_draw(oracles.by_lowest_index)
    assert worst_ratio(law, 3, 4, 1) == P**-2


def test_a_rate_without_the_factor_two_is_caught() -> None:
    """With λ = ε / D the promised ratio is p^−D."""
    for law in (permute_and_flip_probabilities, exponential_probabilities):
        assert worst_ratio(one_draw(law), 2, 8, 3) > P**-3


def test_scores_on_a_finer_grid_than_the_noise_are_caught() -> None:
    """Scores that move by 2^(q + 1) under noise for 2^q, here q = 0."""
    for law in (permute_and_flip_probabilities, exponential_probabilities):
        assert worst_ratio(one_draw(law), 2, 5, 2) > P**-2


def worst_ratio(law: OrderedLaw, n: int, top: int, moved: int) -> Fraction:
    cached = cache(law)
    return max(
        share / cached(right)[answer]
        for left, right in neighbours(n, top, moved)
        for answer, share in cached(left).items()
    )


def neighbours(n: int, top: int, moved: int) -> Iterator[tuple[Scores, Scores]]:
    for left in product(range(top + 1), repeat=n):
        steps = [range(max(0, s - moved), min(top, s + moved) + 1) for s in left]
        yield from ((left, right) for right in product(*steps))
