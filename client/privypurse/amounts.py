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
    """A privacy loss (ε, δ), or a limit on a privacy loss."""

    epsilon: Decimal
    delta: Decimal = Decimal(0)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(Decimal(body["epsilon"]), Decimal(body.get("delta", "0")))

    def __str__(self) -> str:
        return f"ε = {self.epsilon:f}" + (f", δ = {self.delta:f}" if self.delta else "")


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


def limit(epsilon: Number, delta: Number) -> dict[str, str]:
    """The request body of an allowance or a cap."""
    return {"epsilon": decimal_text(epsilon), "delta": decimal_text(delta)}
