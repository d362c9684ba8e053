"""Zero-concentrated privacy loss: the ρ of every mechanism, as an exact rational, rounded up.

M is ρ-zCDP if D_α(M(x)‖M(y)) ≤ α·ρ for all α > 1 and all neighbours, both ways, with D_α the Rényi
divergence (Bun and Steinke 2016). Each class below bounds the ρ of one release. ``of_group`` gives
the bound for a change of several records: it is evaluated at the group's own change, because a
bound for one record times the square of the group is larger for all but the last two classes.

A charge is a whole number of femto-ρ (ρ = femto / 10¹⁵). Each release is rounded up once.
``tests/evidence/certification/test_rho.py`` compares every bound with exact laws on neighbours.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from accounting.privacy_loss import NANO

FEMTO = 10**15
#: No limit in ρ reaches this many units of 10⁻¹⁵. So a charge of more fits no limit, and is stored
#: as this number.
LARGEST_FEMTO = 10**18


def pure_rho(epsilon: Fraction) -> Fraction:
    """A bound on ε·tanh(ε/2), the least ρ of every ε-DP mechanism; at most ε.

    Proof. Every ε-DP pair is a post-processing of randomised response, of which D_α is the mean of
    ε·tanh over [ε/2, (α − ½)ε] ≤ ε·tanh(αε/2) ≤ α·ε·tanh(ε/2): tanh is concave and 0 at 0. The
    fraction is Lambert's third convergent of tanh, which is above it.
    """
    square = epsilon * epsilon
    return min(epsilon, square * (60 + square) / (12 * (10 + square)))


def bounded_range_rho(eta: Fraction) -> Fraction:
    """A bound on ρ if the log of every probability ratio lies in one interval of length η.

    Proof. D_α = φ(η) + φ(−(α − 1)η)/(α − 1) for the cumulant function φ of a coin, and Hoeffding's
    lemma bounds φ(s) by its mean times s plus s²/8.
    """
    return min(eta, eta * eta / 8)


def laplace_rho(rate: Fraction, change: int) -> Fraction:
    """A bound on ρ of discrete Laplace noise of rate λ on a whole number that moves by ``change``.

    The exact ρ is ε − (λ/sinh λ)(1 − e^−ε) with ε = λ·change. Rationals bound it from above by
    sinh λ/λ ≤ 1/(1 − λ²/6) and e^−x ≤ (12 − 6x + x²)/(12 + 6x + x²).
    """
    epsilon, square = rate * change, rate * rate
    pure = pure_rho(epsilon)
    if change < 2 or square > 6:
        return pure
    decay = 12 * epsilon / (12 + 6 * epsilon + epsilon * epsilon)
    return min(pure, epsilon - (1 - square / 6) * decay)


class RhoBound(ABC):
    """A bound on the ρ of one release, for a change of one record or of a group of records.

    Bounds are immutable values: equal ones have equal hashes, and their charges are cached.
    """

    @abstractmethod
    def of_group(self, members: int) -> Fraction:
        """The bound for a change of at most ``members`` records."""

    def femto(self, members: int = 1) -> int:
        """The charge in whole femto-ρ, rounded up."""
        return _femto(self, members)


@lru_cache(maxsize=1024)
def _femto(bound: RhoBound, members: int) -> int:
    """The charge of a bound, cached: a quote asks for it in each step and in the sum of all.

    All callers share the cache, so the time of a quote may show that somebody asked for the same
    before. A bound follows from a request and public facts, and never from records.
    """
    return in_femto(bound.of_group(members))


@dataclass(frozen=True, slots=True)
class Pure(RhoBound):
    """Any ε-DP release. Permute-and-flip, one-shot draws and (ε, δ) mechanisms have no less."""

    epsilon: Fraction

    def of_group(self, members: int) -> Fraction:
        return pure_rho(self.epsilon * members)


@dataclass(frozen=True, slots=True)
class BoundedRange(RhoBound):
    """``draws`` exponential mechanisms in a row, each of range η.

    η is the rate times the most that one change moves two scores apart.
    """

    eta: Fraction
    draws: int = 1

    def of_group(self, members: int) -> Fraction:
        return self.draws * bounded_range_rho(self.eta * members)


@dataclass(frozen=True, slots=True)
class LaplaceNoise(RhoBound):
    """Discrete Laplace noise of rate λ on a vector of whole numbers.

    One change moves the vector by at most ``total`` in the L1 norm, and no number by more than
    ``largest``. The sum is largest if as few numbers as possible move, because ρ is convex in the
    change and 0 at 0.
    """

    rate: Fraction
    total: int
    largest: int

    def of_group(self, members: int) -> Fraction:
        full, rest = divmod(self.total, self.largest)
        return full * laplace_rho(self.rate, self.largest * members) + laplace_rho(
            self.rate, rest * members
        )


@dataclass(frozen=True, slots=True)
class LaplaceNoiseOnPersons(RhoBound):
    """Discrete Laplace noise of rate λ on the number of distinct persons in each of some cells.

    A person with m records is in at most min(m, ``cells``) cells, and moves each number by 1.
    """

    rate: Fraction
    cells: int

    def of_group(self, members: int) -> Fraction:
        return min(members, self.cells) * laplace_rho(self.rate, 1)


@dataclass(frozen=True, slots=True)
class GaussianNoise(RhoBound):
    """Discrete Gaussian noise of σ² = ``square`` on a vector of whole numbers; it has no finite ε.

    One change moves the vector by at most ``squares`` in the sum of squares. Source: Canonne,
    Kamath, Steinke 2020, Theorem 14.
    """

    square: Fraction
    squares: int

    def of_group(self, members: int) -> Fraction:
        return self.squares * members**2 / (2 * self.square)


@dataclass(frozen=True, slots=True)
class Together(RhoBound):
    """Several releases from the same records, also if earlier ones choose the later ones."""

    parts: tuple[RhoBound, ...]

    def of_group(self, members: int) -> Fraction:
        return sum((part.of_group(members) for part in self.parts), Fraction(0))


def in_femto(rho: Fraction) -> int:
    """ρ in whole femto-ρ, rounded up."""
    return min(-(-rho.numerator * FEMTO // rho.denominator), LARGEST_FEMTO)


def pure_femto(epsilon_nano: int) -> int:
    """The charge of any ε-DP query: at most ε·10¹⁵, so sums of charges keep to 64 bits.

    ``pure_rho`` in whole numbers, ten times as fast: searches evaluate it often.
    """
    square, unit = epsilon_nano * epsilon_nano, NANO * NANO
    above, below = square * (60 * unit + square) * FEMTO, 12 * unit * (10 * unit + square)
    return min(epsilon_nano * (FEMTO // NANO), -(-above // below), LARGEST_FEMTO)


def largest_pure(rho_femto: int) -> int:
    """The largest ε, in whole nano-ε, of which ``pure_femto`` is at most ``rho_femto``."""
    return largest_within(pure_femto, rho_femto)


def largest_within(femto: Callable[[int], int], rho_femto: int) -> int:
    """The largest ε, in whole nano-ε, whose charge ``femto`` is at most ``rho_femto``.

    ``femto`` never falls. Every large charge is ``LARGEST_FEMTO``, so the search stops below it.
    """
    rho_femto = min(rho_femto, LARGEST_FEMTO - 1)
    low, high = 0, 1
    while femto(high) <= rho_femto:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if femto(middle) <= rho_femto else (low, middle)
    return low
