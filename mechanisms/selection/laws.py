"""The exact laws of selection, as rationals of p = e^−λ, to which tests compare the samplers.

Every law is a function of whole-number scores and a rational p in (0, 1). On scores that neighbours
move by at most D, loss ε means λ = ε / (2kD), so that e^ε = p^(−2kD).
"""

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import combinations, pairwise, permutations

Law = Callable[[Sequence[int], Fraction], list[Fraction]]
OrderedLaw = dict[tuple[int, ...], Fraction]
Polynomial = list[Fraction]


def exponential_probabilities(scores: Sequence[int], p: Fraction) -> list[Fraction]:
    """The law of the exponential mechanism: P(r) ∝ p^−score(r), where p < 1 follows from ε."""
    best = max(scores)
    weights = [p ** (best - score) for score in scores]
    return [weight / sum(weights) for weight in weights]


def permute_and_flip_probabilities(scores: Sequence[int], p: Fraction) -> list[Fraction]:
    """P(r) = q(r)·∫₀¹ Π_{i ≠ r} (1 − q(i)·t) dt, where q(i) = p^(max − score(i)).

    Each candidate has a uniform time t. Candidate r is taken if its coin q(r) shows heads and no
    candidate was taken before.
    """
    best = max(scores)
    accepted = [p ** (best - score) for score in scores]
    return [
        q * _integral(_product([1, -other] for j, other in enumerate(accepted) if j != i), 0, 1)
        for i, q in enumerate(accepted)
    ]


def peeled_probabilities(law: Law, scores: Sequence[int], p: Fraction, k: int) -> OrderedLaw:
    """P of every ordered answer of k draws of ``law``, each among the remaining candidates.

    With the exponential law this is Plackett–Luce, which the race draws in one pass.
    """
    answers: OrderedLaw = {(): Fraction(1)}
    for _ in range(k):
        longer: OrderedLaw = {}
        for answer, probability in answers.items():
            rest = [r for r in range(len(scores)) if r not in answer]
            for r, share in zip(rest, law([scores[r] for r in rest], p), strict=True):
                longer[(*answer, r)] = probability * share
        answers = longer
    return answers


def one_shot_probabilities(scores: Sequence[int], p: Fraction, k: int) -> OrderedLaw:
    """The k largest of score + exponential noise of rate λ: P of every ordered answer.

    y = e^(−λ(score + noise)) is uniform on (0, c), c = p^score up to a common factor, and the
    largest value has the smallest y. For the answer r₁, …, r_k this integrates the density over 0 <
    y₁ < … < y_k with y_j < c(r_j) and all others above y_k. Between the values of c the integrands
    are polynomials.
    """
    best = max(scores)
    ends = [p ** (score - best) for score in scores]
    return {answer: _one_answer(answer, ends) for answer in permutations(range(len(ends)), k)}


def subset_probabilities(
    scores: Sequence[int], p: Fraction, k: int
) -> dict[tuple[int, ...], Fraction]:
    """P(S) ∝ p^(−Σ_{r ∈ S} score(r)) of every set of k candidates, as an ascending tuple.

    Here λ = ε / ρ, where ρ bounds the spread of k (``model.joint_influence``): e^ε = p^−ρ.
    """
    best = sum(sorted(scores)[-k:])
    weights = {
        chosen: p ** (best - sum(scores[r] for r in chosen))
        for chosen in combinations(range(len(scores)), k)
    }
    whole = sum(weights.values())
    return {chosen: weight / whole for chosen, weight in weights.items()}


def _one_answer(answer: tuple[int, ...], ends: Sequence[Fraction]) -> Fraction:
    others = [end for r, end in enumerate(ends) if r not in answer]
    last = min([ends[answer[-1]], *others])
    cuts = [Fraction(0), *sorted({min(end, last) for end in ends})]
    pieces = list(pairwise(cuts))
    # Each candidate r draws a uniform key between 0 and ``ends[r]``, and the k smallest keys are
    # selected in order. ``below`` is the probability that the keys of the candidates so far ascend
    # and stay below y. It is a polynomial in y between two consecutive ends, and ``below[i]`` holds
    # its coefficients on interval i.
    below: list[Polynomial] = [[Fraction(1)]] * len(pieces)
    for r in answer[:-1]:
        below = _accumulated(below, pieces, ends[r])
    above = _product([1, -1 / end] for end in others)
    return sum(
        (
            _integral(_times(polynomial, above), low, high) / ends[answer[-1]]
            for polynomial, (low, high) in zip(below, pieces, strict=True)
        ),
        Fraction(0),
    )


def _accumulated(
    density: list[Polynomial], pieces: list[tuple[Fraction, Fraction]], end: Fraction
) -> list[Polynomial]:
    """The function y ↦ ∫₀^y density(t) dt / end by pieces; the density is 0 beyond ``end``."""
    total = Fraction(0)
    accumulated = []
    for polynomial, (low, high) in zip(density, pieces, strict=True):
        if low >= end:
            accumulated.append([total])
            continue
        rising = _antiderivative([c / end for c in polynomial])
        rising[0] = total - _at(rising, low)
        total = _at(rising, high)
        accumulated.append(rising)
    return accumulated


def _product(factors: Iterable[Sequence[Fraction | int]]) -> Polynomial:
    return reduce(_times, factors, [Fraction(1)])


def _times(first: Polynomial, second: Sequence[Fraction | int]) -> Polynomial:
    product = [Fraction(0)] * (len(first) + len(second) - 1)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            product[i + j] += a * b
    return product


def _integral(polynomial: Polynomial, low: Fraction | int, high: Fraction | int) -> Fraction:
    rising = _antiderivative(polynomial)
    return _at(rising, high) - _at(rising, low)


def _antiderivative(polynomial: Polynomial) -> Polynomial:
    return [Fraction(0), *(c / (i + 1) for i, c in enumerate(polynomial))]


def _at(polynomial: Polynomial, x: Fraction | int) -> Fraction:
    return sum((c * x**i for i, c in enumerate(polynomial)), Fraction(0))
