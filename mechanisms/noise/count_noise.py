"""Noise on whole numbers of either kind: discrete Laplace at an ε, or discrete Gaussian at a ρ."""

from collections.abc import Mapping
from fractions import Fraction
from typing import cast

from mechanisms.model.context import QueryContext
from mechanisms.model.sensitivity import Integers
from mechanisms.noise.discrete_gaussian import Deviation, discrete_gaussian
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.gaussian_sums import sum_half_width
from mechanisms.noise.rate import Rate
from mechanisms.noise.unequal_sums import likely_sum_error

#: The law of the noise of one count is discrete Laplace with this rate, or discrete Gaussian with
#: this standard deviation.
Law = Rate | Deviation


def noisy(counts: Integers, law: Law, context: QueryContext) -> Integers:
    """The numbers with independent noise of one law, in their shape.

    Privacy: that of ``discrete_laplace`` or of ``discrete_gaussian`` for the whole array.
    """
    values, means = counts.ravel(), (context.randomness, context.executor)
    if isinstance(law, Deviation):
        return discrete_gaussian(values, law, *means).reshape(counts.shape)
    return discrete_laplace(values, law, *means).reshape(counts.shape)


def variance(law: Law) -> Fraction:
    """A bound on the variance of one noise: 2/λ², or σ²."""
    return law.square if isinstance(law, Deviation) else 2 / law.exponent() ** 2


def likely_error(laws: Mapping[Law, int], confidence: float) -> int:
    """The least m at which the sum of all noises lies within ±m with this probability.

    Args:
        laws: how many noises of each law are added; all laws are of one kind.

    For information: the error of a very wide sum is slightly larger than the least.
    """
    if isinstance(next(iter(laws)), Deviation):
        miss = 1 - Fraction(repr(confidence))
        return sum_half_width(cast(Mapping[Deviation, int], laws), miss)
    return likely_sum_error(cast(Mapping[Rate, int], laws), confidence)
