"""The laws of selection, derived differently from ``mechanisms.selection.laws``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations
from math import factorial, prod


def by_all_orders(scores: Sequence[int], p: Fraction) -> list[Fraction]:
    """Permute-and-flip as in its paper: a uniform order, then one coin per candidate."""
    best = max(scores)
    coin = [p ** (best - score) for score in scores]
    law = [Fraction(0)] * len(scores)
    for order in permutations(range(len(scores))):
        reached = Fraction(1, factorial(len(scores)))
        for r in order:
            law[r] += reached * coin[r]
            reached *= 1 - coin[r]
    return law


def by_geometric_argmax(scores: Sequence[int], p: Fraction) -> list[Fraction]:
    """Geometric noisy max, ties uniform, by the sets that may tie at each top cell."""
    return _geometric_argmax(scores, p, lambda tied: dict.fromkeys(tied, Fraction(1, len(tied))))


def by_lowest_index(scores: Sequence[int], p: Fraction) -> list[Fraction]:
    """A wrong variant of permute-and-flip that gives ties to the lowest index."""
    return _geometric_argmax(scores, p, lambda tied: {min(tied): Fraction(1)})


def _geometric_argmax(scores, p, shares):  # type: ignore[no-untyped-def]
    """Σ over tied sets S and cells max + m of P(S ties there): with x = p^m the chance is a
    polynomial of x without constant, and Σ_m x^k = 1 / (1 − p^k)."""
    n, best = len(scores), max(scores)
    law = [Fraction(0)] * n
    for tied in _subsets(range(n)):
        if not tied:
            continue
        # The tie is m above the best score, and x = p^m. A tied candidate of score s contributes
        # the factor (1 − p)·p^(best − s)·x. Any other must lie below the tie and contributes 1 −
        # p^(best − s)·x.
        polynomial = {0: Fraction(1)}
        for r in range(n):
            weight = p ** (best - scores[r])
            factor = {1: (1 - p) * weight} if r in tied else {0: Fraction(1), 1: -weight}
            product: dict[int, Fraction] = {}
            for i, a in polynomial.items():
                for j, b in factor.items():
                    product[i + j] = product.get(i + j, Fraction(0)) + a * b
            polynomial = product
        chance = sum(c / (1 - p**k) for k, c in polynomial.items())
        for r, share in shares(tied).items():
            law[r] += share * chance
    return law


def one_shot_by_cells(answer: tuple[int, ...], scores: Sequence[int], p: Fraction) -> Fraction:
    """P(the k largest of s + G, ties in random order, are ``answer``), from the top cell down.

    The noise is memoryless: candidates that reach the highest score are in uniform order. Below
    it there are finitely many cells.
    """
    best, n, k = max(scores), len(scores), len(answer)
    total = Fraction(0)
    for above in _subsets(range(n)):
        reach = [p ** (best - score) for score in scores]
        first = answer[: len(above)]
        if len(above) >= k and set(answer) <= set(above):
            chance = prod(reach[r] if r in above else 1 - reach[r] for r in range(n))
            total += chance * Fraction(factorial(len(above) - k), factorial(len(above)))
        elif len(above) < k and set(first) == set(above):
            rest = frozenset(range(n)) - set(above)
            inner = _cells(answer[len(above) :], rest, best - 1, scores, p)
            total += prod(reach[r] for r in above) * inner / factorial(len(above))
    return total


def _cells(
    answer: tuple[int, ...], rest: frozenset[int], cell: int, scores: Sequence[int], p: Fraction
) -> Fraction:
    """P(all of ``rest`` stand at ``cell`` or below, and the answer comes first among them)."""
    total = Fraction(0)
    for here in _subsets(sorted(rest)):
        if any(scores[r] > cell for r in here):
            continue
        at = prod(((1 - p) * p ** (cell - scores[r]) for r in here), start=Fraction(1))
        others = rest - set(here)
        if len(here) >= len(answer):
            if set(answer) <= set(here):
                below = prod((1 - p ** max(cell - scores[r], 0) for r in others), start=Fraction(1))
                orders = Fraction(factorial(len(here) - len(answer)), factorial(len(here)))
                total += at * below * orders
        elif set(answer[: len(here)]) == set(here) and all(scores[r] < cell for r in others):
            inner = _cells(answer[len(here) :], others, cell - 1, scores, p)
            total += at * inner / factorial(len(here))
    return total


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(len(items) + 1):
        yield from combinations(items, size)
