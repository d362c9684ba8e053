"""Noisy max with exponential noise: permute-and-flip, and its one-shot top-k.

Candidate i has the noisy score sᵢ + Eᵢ/λ, Eᵢ exponential, and the largest is drawn. That is the
race with tᵢ = λ·(max s − sᵢ) − Eᵢ. An exponential variable is the sum of a geometric whole part
and an independent continuous fraction. So on whole-number scores this is also noisy max with
geometric noise, ties uniformly at random. Ties by lowest index would be as private, but another
law.
"""

from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.addition import Integers
from mechanisms.noise.race import first_of_rows, first_to_arrive
from mechanisms.noise.rate import Rate


def noisy_max(
    scores: Integers,
    k: int,
    rate: Rate,
    randomness: Randomness,
    executor: Executor,
    *,
    widen: float = 1.0,
) -> Integers:
    """Indices of the k largest of ``scores`` plus exponential noise, shape (k,), in order.

    Args:
        scores: private whole numbers, shape (n,), n ≥ k ≥ 1; |score| < 2⁶² by public bounds.
        k: the number of indices; all come from one noisy vector.
        rate: ``Rate.of(E, q, k)`` for scores of sensitivity 2^q in any directions.
        widen: as in ``race``.

    Privacy: exactly ε-DP (attained): if k values rise by at most 2·2^q each, the density falls by
        at most exp(−2k·λ·2^q) = e^−ε.
    Source: McKenna and Sheldon 2020 (permute-and-flip); Ding et al. 2021 (exponential noise); the
        law is ``laws.one_shot_probabilities``.
    """
    return first_to_arrive(scores, k, rate, randomness, executor, gumbel=False, widen=widen)


def noisy_max_of_rows(
    scores: Integers, rate: Rate, randomness: Randomness, *, widen: float = 1.0
) -> Integers:
    """The column of the largest noisy score of each row, shape (m,), for ``scores`` (m, n).

    Privacy: that of ``noisy_max`` for one index, for each row.
    """
    return first_of_rows(scores, rate, randomness, gumbel=False, widen=widen)
