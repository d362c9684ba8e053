"""The noise of released tables as a value: it draws, and it knows how wide it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from accounting.rho import GaussianNoise as GaussianRho
from accounting.rho import LaplaceNoise as LaplaceRho
from accounting.rho import LaplaceNoiseOnPersons, RhoBound
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise import gaussian_sums
from mechanisms.noise.addition import Integers
from mechanisms.noise.discrete_gaussian import Deviation, discrete_gaussian
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.laplace_sums import half_width, variance
from mechanisms.noise.rate import Rate

Floats = NDArray[np.float64]
#: The exponents t of Chernoff bounds on weighted sums of noises, as shares of the largest valid t.
#: Every t gives a bound that holds, so the least bound is used.
_TRIALS = np.concatenate([np.geomspace(1e-6, 0.5, 120), 1 - np.geomspace(0.5, 1e-4, 40)])
#: The number of exponents of Chernoff bounds that are tried, and the number of sums that one
#: vectorised step bounds.
TRIES, _BLOCK = len(_TRIALS), 1 << 10

_MOST_SHIFT = 60


class Noise(Protocol):
    """Independent noise of one public law on every number of a table, in whole steps."""

    @property
    def law(self) -> str:
        """The name of the law in answers."""

    @property
    def scale(self) -> float:
        """The scale of the law in steps."""

    @property
    def unit(self) -> int:
        """Noise is a whole multiple of so many steps."""

    @property
    def variance(self) -> float:
        """The variance of one noise, in squares of steps."""

    def rho_bound(self, total: int, largest: int) -> RhoBound:
        """The ρ of this noise on numbers that one change moves by at most ``total`` in all.

        It moves each of them by at most ``largest``.
        """

    def distinct_rho_bound(self, cells: int) -> RhoBound:
        """The ρ of this noise on the numbers of persons in ``cells`` cells.

        A person with m rows moves at most min(m, ``cells``) of them, each by at most 1.
        """

    def add(self, values: Integers, randomness: Randomness, executor: Executor) -> Integers:
        """``values`` with noise, shape (n,); |value| < 2⁶² by public bounds."""

    def half_width(self, terms: int, miss: Fraction) -> int:
        """The least m that a sum of ``terms`` noises exceeds at most with chance ``miss``."""

    def upper_bounds(
        self, first: Integers, second: Integers, a: float, b: float, miss: float
    ) -> Floats:
        """For each i a bound that a·S − b·T exceeds at most with chance ``miss``.

        S is the sum of ``first[i]`` noises and T the sum of ``second[i]`` other ones; a, b > 0.
        """


@dataclass(frozen=True)
class LaplaceNoise:
    """Discrete Laplace noise: ε-DP for numbers that change by at most ε / λ steps in all."""

    rate: Rate
    law = "discrete_laplace"
    unit = 1

    @property
    def scale(self) -> float:
        return float(1 / self.rate.exponent())

    @property
    def variance(self) -> float:
        return variance(self.rate)

    def rho_bound(self, total: int, largest: int) -> RhoBound:
        return LaplaceRho(self.rate.exponent(), total, largest)

    def distinct_rho_bound(self, cells: int) -> RhoBound:
        return LaplaceNoiseOnPersons(self.rate.exponent(), cells)

    def add(self, values: Integers, randomness: Randomness, executor: Executor) -> Integers:
        return discrete_laplace(values, self.rate, randomness, executor)

    def half_width(self, terms: int, miss: Fraction) -> int:
        return half_width(self.rate, terms, miss)

    def upper_bounds(
        self, first: Integers, second: Integers, a: float, b: float, miss: float
    ) -> Floats:
        # X = a·S − b·T is a weighted difference of two sums of noises. By Markov's inequality for
        # exp(t·X), P(X ≥ d) ≤ E exp(t·X) / exp(t·d) for every t > 0 at which the mean exists. The
        # least bound of several t is a bound too.
        step = float(self.rate.exponent())
        t = _TRIALS * step / max(a, b)
        mean_of_a, mean_of_b = self._log_mean(a * t), self._log_mean(b * t)
        bounds = np.empty(len(first))
        for start in range(0, len(first), _BLOCK):
            part = slice(start, start + _BLOCK)
            growth = first[part, None] * mean_of_a + second[part, None] * mean_of_b
            bounds[part] = ((growth - log(miss)) / t).min(axis=1)
        return bounds

    def _log_mean(self, t: Floats) -> Floats:
        """log E exp(t·Z) of one noise Z, for |t| < λ."""
        step = float(self.rate.exponent())
        result: Floats = (
            2 * np.log(-np.expm1(-step))
            - np.log(-np.expm1(t - step))
            - np.log(-np.expm1(-t - step))
        )
        return result


@dataclass(frozen=True)
class GaussianNoise:
    """Discrete Gaussian noise: no finite ε; Q/(2σ²)-zCDP for numbers that move by Q in squares.

    Numbers are rounded down to multiples of 2^``shift`` first, where σ would be too many steps:
    each sum once, not each of its rows. ``squares`` is Q and ``deviation`` σ, in such multiples.
    """

    deviation: Deviation
    squares: int
    shift: int = 0
    law = "discrete_gaussian"

    @classmethod
    def of(cls, rho_femto: int, moves: Sequence[Sequence[int]]) -> Self:
        """The least noise for this ρ. ``moves``: all ways in which one change moves the numbers.

        Raises: UnsupportedQuery for a ρ that is too small for exact arithmetic.
        """
        for shift in range(_MOST_SHIFT + 1):
            # Every number is rounded down to a multiple of 2^shift. If one change of the records
            # moves a number by x, it moves the rounded one by at most ⌈x / 2^shift⌉ such multiples.
            squares = max(sum((-(-one >> shift)) ** 2 for one in numbers) for numbers in moves)
            try:
                return cls(Deviation.of(rho_femto, squares), squares, shift)
            except UnsupportedQuery:
                if squares <= len(max(moves, key=len)):
                    # A coarser rounding would not lower the noise, because one change of the
                    # records already moves each rounded number by at most one multiple of 2^shift.
                    raise
        raise UnsupportedQuery("rho is too small for exact arithmetic")

    @property
    def scale(self) -> float:
        return sqrt(float(self.deviation.square)) * 2.0**self.shift

    @property
    def unit(self) -> int:
        return 1 << self.shift

    @property
    def variance(self) -> float:
        return gaussian_sums.variance(self.deviation) * 4.0**self.shift

    def rho_bound(self, total: int, largest: int) -> RhoBound:
        return GaussianRho(self.deviation.square, self.squares)

    def distinct_rho_bound(self, cells: int) -> RhoBound:
        return GaussianRho(self.deviation.square, cells)

    def add(self, values: Integers, randomness: Randomness, executor: Executor) -> Integers:
        rounded = values >> self.shift
        noisy = discrete_gaussian(rounded, self.deviation, randomness, executor)
        return noisy << self.shift

    def half_width(self, terms: int, miss: Fraction) -> int:
        width = gaussian_sums.half_width(self.deviation, terms, miss)
        # Each summed number was rounded down to a multiple of 2^shift, and so by less than 2^shift.
        # So the confidence interval is wider by 2^shift for each number.
        return (width + (terms if self.shift else 0)) << self.shift

    def upper_bounds(
        self, first: Integers, second: Integers, a: float, b: float, miss: float
    ) -> Floats:
        # A noise X of standard deviation σ is sub-Gaussian: E exp(t·X) ≤ exp(t²σ²/2) for every t.
        # Sums have the sum of their σ² (Canonne, Kamath, Steinke 2020, Corollary 17).
        squares = float(self.deviation.square) * (first * a * a + second * b * b)
        rounded = (first * a + second * b) * bool(self.shift)
        bounds: Floats = (np.sqrt(-2 * log(miss) * squares) + rounded) * 2.0**self.shift
        return bounds
