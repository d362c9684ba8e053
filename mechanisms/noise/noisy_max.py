"""Geometric noisy max on an integer grid: permute-and-flip, and its one-shot top-k.

Danger: words and answer share coins, so neither the words used nor exact run times may be
published. The work itself does not depend on the scores.

A draw adds one-sided geometric noise to every score and takes the largest, ties uniformly. An
exponential variable is the sum of a geometric whole part and an independent continuous fraction. So
this *is* noisy max with exponential noise, which is permute-and-flip. Ties by lowest index would be
as private, but follow another law.
"""

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
        k: the number of indices; all come from one noisy vector.
        rate: ``Rate.of(E, q, k)`` for scores of sensitivity 2^q in any directions.

    Raises: NoiseOverflow with probability below n·e⁻¹⁰²⁴, whatever the scores.
    Privacy: exactly ε-DP (attained): if k values rise by at most 2·2^q each, the density falls by
        at most exp(−2k·λ·2^q) = e^−ε.
    Source: McKenna and Sheldon 2020 (permute-and-flip); Ding et al. 2021 (exponential noise); the
        law is ``laws.one_shot_probabilities``.
    """
    noisy = add_noise(add_geometric, scores, rate, randomness, executor)
    return largest_in_order(noisy, k, randomness.stream())
