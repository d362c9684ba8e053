"""Geometric noisy max on an integer grid: permute-and-flip, and its one-shot top-k.

A draw adds one-sided geometric noise to every score and takes the largest, ties uniformly. An
exponential variable splits into its whole part, which is geometric, and its fraction, which is
independent and continuous; so this *is* noisy max with exponential noise, and that is
permute-and-flip. Ties to the lowest index would be as private, yet another law.

Work and words do not depend on the scores, but words and answer share coins: neither the words
used nor exact times may be published.
"""

from __future__ import annotations

from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.addition import Integers, add_noise
from mechanisms.noise.geometric import add_geometric
from mechanisms.noise.order import largest_in_order
from mechanisms.noise.rate import Rate


def noisy_max(
    scores: Integers, k: int, rate: Rate, randomness: Randomness, executor: Executor
) -> Integers:
    """Indices of the k largest of ``scores`` plus geometric noise, shape (k,), in order.

    Args:
        scores: private whole numbers, shape (n,), n ≥ k ≥ 1; |score| < 2⁶² by public bounds.
        k: how many; all come from one noisy vector.
        rate: ``Rate.of(E, q, k)`` for scores of sensitivity 2^q in any directions.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴, whatever the scores.
    Privacy: ε-DP exactly (attained): with k values raised by at most 2·2^q each, the density
        falls by at most exp(−2k·λ·2^q) = e^−ε.
    Source: McKenna and Sheldon 2020 (permute-and-flip); Ding et al. 2021 (exponential noise);
        the law is ``laws.one_shot_probabilities``.
    """
    noisy = add_noise(add_geometric, scores, rate, randomness, executor)
    return largest_in_order(noisy, k, randomness.stream())
