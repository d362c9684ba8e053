"""Amounts of privacy loss as exact decimals, equal to those that the service compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Self

#: Types that callers may pass for ε or δ. A float means its shortest decimal form.
Number = int | float | str | Decimal


@dataclass(frozen=True, slots=True)
class Amount:
    """A privacy loss (ε, δ), or a limit on a privacy loss.

    ``rho`` and ``composition_delta`` are None where the service states none.
    """

    epsilon: Decimal
    delta: Decimal = Decimal(0)
    rho: Decimal | None = None
    composition_delta: Decimal | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        more = (body.get(name) for name in ("rho", "composition_delta"))
        return cls(
            Decimal(body["epsilon"]),
            Decimal(body.get("delta", "0")),
            *(None if one is None else Decimal(one) for one in more),
        )

    def __str__(self) -> str:
        return f"ε = {self.epsilon:f}" + (f", δ = {self.delta:f}" if self.delta else "")

    def with_rho(self) -> str:
        """The same with ρ, where the service states it: for what is left, or spent, of a limit."""
        return str(self) + ("" if self.rho is None else f", ρ = {self.rho:f}")


def decimal_text(amount: Number) -> str:
    """The exact decimal text that the service reads; 0.1 means one tenth. Raises: ValueError."""
    if isinstance(amount, bool):
        raise ValueError("an amount is a number or a decimal text")
    try:
        # The ``repr`` of a subclass of float, such as NumPy's, would contain the name of its type.
        text = float.__repr__(amount) if isinstance(amount, float) else amount
        return format(Decimal(text), "f")
    except InvalidOperation:
        raise ValueError("an amount is a number or a decimal text") from None


def limit(epsilon: Number, delta: Number, composition_delta: Number = 0) -> dict[str, str]:
    """The request body of an allowance or a cap."""
    body = {"epsilon": decimal_text(epsilon), "delta": decimal_text(delta)}
    composition = decimal_text(composition_delta)
    if Decimal(composition):
        body["composition_delta"] = composition
    return body
