"""Privacy loss and its arithmetic.

A loss has whole numbers: nano-epsilons (ε = epsilon_nano / 10⁹) and atto-deltas (δ = delta_atto /
10¹⁸), and a charge also femto-ρ (ρ = rho_femto / 10¹⁵). Sums of charges are therefore exact: a
budget of 1 is spent by ten queries at 0.1, never by nine or eleven. Shares round down, and the last
share takes the remainder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from operator import add, sub
from typing import Self

from accounting.measures import MEASURES

NANO = 10**9
ATTO = 10**18

#: The largest ε of a limit is 10⁹, so the sum of any two amounts fits easily in 64 bits.
MAX_EPSILON_NANO = 10**9 * NANO
#: The largest δ. δ = 1 gives no privacy at all, so every amount is below it.
MAX_DELTA_ATTO = ATTO - 1
#: The names of ε and δ and the decimal places of their units: every reply shows these two amounts.
_SHOWN = tuple((measure.name, measure.digits) for measure in MEASURES[:2])


@dataclass(frozen=True, slots=True)
class PrivacyLoss:
    """An (ε, δ) privacy loss: ε in nano-epsilons, δ in atto-deltas; pure when δ = 0.

    Charges and their sums also count ρ in femto-ρ, and the releases without a finite ε. Both are 0
    in the loss that a mechanism receives.
    """

    epsilon_nano: int
    delta_atto: int = 0
    rho_femto: int = 0
    unpriced: int = 0

    def __post_init__(self) -> None:
        if min(self.amounts) < 0:
            raise ValueError(f"a privacy loss is non-negative, got {self!r}")

    @classmethod
    def parse(
        cls, epsilon: str | int | float | Decimal, delta: str | int | float | Decimal = 0
    ) -> Self:
        """Read decimal amounts; ValueError when one has more digits than its unit holds."""
        return cls(parse_units(epsilon, 9), parse_units(delta, 18))

    def __add__(self, other: Self) -> Self:
        """Sequential composition: losses of releases from the same records add up."""
        return type(self)(*map(add, self.amounts, other.amounts))

    def __sub__(self, other: Self) -> Self:
        return type(self)(*map(sub, self.amounts, other.amounts))

    def __mul__(self, times: int) -> Self:
        return type(self)(*(amount * times for amount in self.amounts))

    def fits(self, within: Self) -> bool:
        """True if both ε and δ are at most those of ``within``. Accounts decide by ``admits``."""
        return self.epsilon_nano <= within.epsilon_nano and self.delta_atto <= within.delta_atto

    def split(self, parts: int) -> tuple[Self, ...]:
        """One share per release, ``parts`` in all; the last share also has the remainder."""
        if parts == 1:
            return (self,)
        share, last = self.shares(parts)
        return (share,) * (parts - 1) + (last,)

    def shares(self, parts: int) -> tuple[Self, Self]:
        """The share of each of ``parts`` releases but the last, and the share of the last.

        No share of a loss without a finite ε has a finite ε.
        """
        if parts < 1:
            raise ValueError(f"a loss is split into at least one part, got {parts}")
        if parts == 1:
            return self, self
        amounts = self.amounts[:-1]
        each = [amount // parts for amount in amounts]
        last = [amount - one * (parts - 1) for amount, one in zip(amounts, each, strict=True)]
        return type(self)(*[*each, self.unpriced]), type(self)(*[*last, self.unpriced])

    def divided(self, share: Fraction) -> tuple[Self, Self]:
        """The part ``share``, rounded down, and the rest of the loss with all of δ.

        It is a part of ε, or of ρ if the loss has no finite ε.
        """
        part, rest = self.weighted([share, 1 - share])
        return part, rest

    def weighted(self, weights: Sequence[Fraction]) -> list[Self]:
        """One share per weight, which add up to 1; the last share also has the remainder and δ.

        Shares of ε are rounded down; of a loss without a finite ε, shares of ρ.
        """
        whole = self.rho_femto if self.unpriced else self.epsilon_nano
        parts = [whole * one.numerator // one.denominator for one in weights]
        parts[-1] = whole - sum(parts[:-1])
        if self.unpriced:
            return [type(self)(0, 0, part, 1) for part in parts]
        return [
            type(self)(part, self.delta_atto if last else 0)
            for part, last in zip(parts, [*[False] * (len(parts) - 1), True], strict=True)
        ]

    @property
    def amounts(self) -> tuple[int, ...]:
        """One whole number per measure (``accounting.measures``)."""
        return (self.epsilon_nano, self.delta_atto, self.rho_femto, self.unpriced)

    def epsilon(self) -> Fraction:
        return Fraction(self.epsilon_nano, NANO)

    def as_dict(self, with_rho: bool = False) -> dict[str, str]:
        """``{"epsilon": "0.5", "delta": "0"}``: decimal strings, as clients see amounts.

        ``with_rho`` adds ``rho``, for charges and for the accounts that count in it.
        """
        amounts = formatted(self.amounts)
        if with_rho:
            amounts["rho"] = format_units(self.rho_femto, 15)
        return amounts

    def as_charge(self, with_rho: bool = True) -> dict[str, str | None]:
        """The same with ``rho``, as clients see charges; ε is None if it is not finite."""
        charge = self.as_dict(with_rho or self.unpriced > 0)
        return {**charge, "epsilon": None} if self.unpriced else {**charge}


#: The largest ε and δ that a charge or a limit may have.
LARGEST = PrivacyLoss(MAX_EPSILON_NANO, MAX_DELTA_ATTO)


def parse_units(amount: str | int | float | Decimal, digits: int) -> int:
    """The whole number of units of 10^−digits in a decimal amount, exactly or ValueError.

    A float is read by its shortest decimal form: 0.1 means one tenth.
    """
    if isinstance(amount, bool):
        raise ValueError("a truth value is not an amount")
    if isinstance(amount, str) and not _is_plain_decimal(amount):
        raise ValueError("not a decimal number")
    try:
        value = Decimal(repr(amount) if isinstance(amount, float) else amount)
    except InvalidOperation:
        raise ValueError("not a decimal number") from None
    if not value.is_finite():
        raise ValueError("not a finite number")
    if value.adjusted() > 24:
        raise ValueError("too large")
    sign, mantissa, exponent = value.as_tuple()
    assert isinstance(exponent, int)  # Infinity and NaN, whose exponent is a letter, were refused.
    significand = int("".join(map(str, mantissa)))
    shift = exponent + digits
    if significand == 0:
        return 0
    # Refuses an amount such as 10^−300 here, before a power of ten with 300 digits is computed for
    # it.
    if shift < -len(mantissa):
        raise ValueError(f"more than {digits} decimal places")
    units = int(significand * 10**shift if shift >= 0 else significand // 10**-shift)
    if shift < 0 and significand % 10**-shift:
        raise ValueError(f"more than {digits} decimal places")
    return -units if sign else units


def format_units(units: int, digits: int) -> str:
    """The shortest decimal string of ``units`` of 10^−digits: 500000000 at 9 is "0.5"."""
    if not units:
        return "0"
    whole, part = divmod(abs(units), 10**digits)
    text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".")
    return f"-{text}" if units < 0 else text


def formatted(amounts: Sequence[int]) -> dict[str, str]:
    """ε and δ, which may be signed, as decimal strings by the names of their measures."""
    return {
        name: format_units(amount, digits)
        for (name, digits), amount in zip(_SHOWN, amounts, strict=False)
    }


def _is_plain_decimal(text: str) -> bool:
    """ASCII digits with an optional sign, point and exponent: no underscores, blanks or words."""
    return len(text) <= 64 and text.isascii() and all(c in "0123456789+-.eE" for c in text)
