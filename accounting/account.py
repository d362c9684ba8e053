"""Budget accounts: the rule that a charge fits, the ranks, and the balance of one account.

An account with a limit (E, D) alone takes charges while their ε and their δ add up to at most E and
D. An owner may give δ_c on top: then charges also fit while their ρ adds up to the limit that
``accounting.conversion`` computes from (E, δ_c). All answers together are (E, D + δ_c)-DP, whoever
chooses them by earlier answers: where the ε of a transcript fits, its loss is at most E without
exception; all others belong to a process that stops within the limit in ρ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Self

from accounting.conversion import MOST_EPSILON_NANO, rho_limit
from accounting.privacy_loss import PrivacyLoss, format_units, formatted
from accounting.rho import largest_pure

#: The sum of ε of an account, in nano-ε, stays below this, so that it fits 64 bits. This holds even
#: where ρ alone admits a charge, whatever its ε.
LARGEST_SUM = 1 << 62


def admits(limits: Sequence[Any], sums: Sequence[Any], charge: Sequence[Any]) -> Any:
    """The guard: whether ``charge`` fits. Each sequence has one amount per measure.

    After these, ``limits`` has 1 if the account allows releases without a finite ε, and 0 if not.
    δ must fit, and so must ε or ρ. A release without a finite ε fits by ρ alone, as does every
    later charge. For whole numbers the result is a bool, which quotes, look-ups and the writer
    read. For columns it is the SQL condition of the UPDATE that charges, so its only
    operators are ``&``, ``|``, ``<=``, ``+`` and ``*``.
    """
    limit_epsilon, limit_delta, limit_rho, _, gaussian = limits
    epsilon, delta, rho, unpriced = sums
    allowed = charge[3] <= gaussian * LARGEST_SUM
    in_epsilon = (unpriced + charge[3] <= 0) & (epsilon + charge[0] <= limit_epsilon)
    in_rho = (1 <= limit_rho) & (rho + charge[2] <= limit_rho)  # noqa: SIM300 - the order of SQL
    in_bits = epsilon + charge[0] <= LARGEST_SUM
    return allowed & (delta + charge[1] <= limit_delta) & (in_epsilon | in_rho & in_bits)


def counts_rho(limit_epsilon_nano: Any) -> bool:
    """Whether an account with this limit counts charges in ρ: beyond, sums could leave 64 bits."""
    return bool(limit_epsilon_nano <= MOST_EPSILON_NANO)


class AccountRank(IntEnum):
    """The kinds of accounts. Locks are taken in the order of these numbers, narrow before wide."""

    #: The rank of the account of one API key that has a limit of its own, over all datasets. It is
    #: the narrowest kind of account, so it is locked first.
    KEY = -1
    ANALYST_ON_DATASET = 0
    ANALYST = 1
    DATASET = 2


@dataclass(frozen=True, slots=True)
class Limit:
    """What an account may be charged: E, D, the limit in ρ, and the δ_c that it follows from.

    The limit in ρ and δ_c are 0 in an account where ε alone counts. ``gaussian`` allows releases
    without a finite ε, after the first of which charges fit by ρ alone.
    """

    epsilon_nano: int
    delta_atto: int = 0
    rho_femto: int = 0
    composition_atto: int = 0
    gaussian: bool = False

    def __post_init__(self) -> None:
        if min(self.amounts) < 0:
            raise ValueError(f"a limit is non-negative, got {self!r}")
        if self.rho_femto and not (self.composition_atto and counts_rho(self.epsilon_nano)):
            raise ValueError("a limit in ρ follows from δ_c and from ε of at most 1000")
        if self.gaussian and not self.rho_femto:
            raise ValueError("releases without a finite ε need a limit in ρ")

    @classmethod
    def of(cls, loss: PrivacyLoss, composition_atto: int = 0, gaussian: bool = False) -> Self:
        """The limit that promises ``loss`` with δ_c on top.

        Raises: ValueError for a δ_c or, with δ_c above 0, an ε beyond ``accounting.conversion``;
            for ``gaussian`` where the limit in ρ is 0.
        """
        epsilon = loss.epsilon_nano
        rho = rho_limit(epsilon, composition_atto) if composition_atto else 0
        return cls(epsilon, loss.delta_atto, rho, composition_atto, gaussian)

    @classmethod
    def read(cls, amounts: Sequence[int]) -> Self:
        """The limit with these ``amounts``."""
        epsilon, delta, rho, composition, gaussian = amounts
        return cls(epsilon, delta, rho, composition, bool(gaussian))

    @property
    def amounts(self) -> tuple[int, ...]:
        """One whole number per measure (``accounting.measures``), then ``gaussian`` as 0 or 1."""
        promise = (self.epsilon_nano, self.delta_atto, self.rho_femto, self.composition_atto)
        return (*promise, int(self.gaussian))

    @property
    def has_rho(self) -> bool:
        """Whether the owner gave δ_c: charges also fit while their ρ adds up within the limit."""
        return self.composition_atto > 0

    @property
    def loss(self) -> PrivacyLoss:
        """(E, D), without δ_c."""
        return PrivacyLoss(self.epsilon_nano, self.delta_atto)

    def as_dict(self) -> dict[str, str | bool]:
        """E and D; with δ_c also it and the limit in ``rho``, and ``gaussian`` where allowed."""
        if not self.has_rho:
            return dict(formatted(self.amounts))
        return {
            **formatted(self.amounts),
            "rho": format_units(self.rho_femto, 15),
            "composition_delta": format_units(self.composition_atto, 18),
            **({"gaussian": True} if self.gaussian else {}),
        }


@dataclass(frozen=True, slots=True)
class Account:
    """A limit and the sum of charges against it, which includes running queries."""

    limit: Limit
    charged: PrivacyLoss

    def __post_init__(self) -> None:
        if not self.admits(PrivacyLoss(0)):
            raise ValueError("an account is never charged beyond its limit")

    @property
    def remaining(self) -> PrivacyLoss:
        return remaining(self.limit.amounts, self.charged.amounts)

    @property
    def largest_epsilon(self) -> int:
        """The largest ε, in nano-ε, of a single ε-DP query that still fits; 0 if none does."""
        return largest_epsilon(self.limit.amounts, self.charged.amounts)

    def admits(self, charge: PrivacyLoss) -> bool:
        return bool(admits(self.limit.amounts, self.charged.amounts, charge.amounts))


def fits_more(limits: Sequence[int], sums: Sequence[int], charge: Sequence[int]) -> int | None:
    """How many charges like this one still fit, one after another; None if nothing bounds them.

    It is the larger number of the two ways, by ε or by ρ, and at most what δ allows.
    """
    most_epsilon, most_delta, most_rho, _, gaussian = limits
    epsilon, delta, rho, unpriced = sums
    if charge[3] and not gaussian:
        return 0

    def times(room: int, each: int) -> int | None:
        return (room // each if each else None) if room >= 0 else 0

    in_epsilon = 0 if unpriced or charge[3] else times(most_epsilon - epsilon, charge[0])
    in_rho = times(most_rho - rho, charge[2]) if most_rho else 0
    in_delta = times(most_delta - delta, charge[1])
    if in_epsilon is None or in_rho is None:
        return in_delta
    either = max(in_epsilon, in_rho)
    return either if in_delta is None else min(either, in_delta)


def largest_epsilon(limits: Sequence[int], sums: Sequence[int]) -> int:
    """The largest ε, in nano-ε, of a single ε-DP query that still fits; 0 if none does."""
    by_epsilon = remaining(limits, sums).epsilon_nano
    room = limits[2] - sums[2]
    return max(by_epsilon, largest_pure(room) if limits[2] and room > 0 else 0)


def remaining(limits: Sequence[int], sums: Sequence[int]) -> PrivacyLoss:
    """What is left in each measure by itself; 0 where another measure admits what lies beyond."""
    epsilon = 0 if sums[3] else max(0, limits[0] - sums[0])
    return PrivacyLoss(epsilon, max(0, limits[1] - sums[1]), max(0, limits[2] - sums[2]))
