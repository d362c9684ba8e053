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

    ``epsilon`` is infinite in a charge of Gaussian noise, which is counted in ρ alone. ``rho`` and
    ``composition_delta`` are None where the service states none. ``gaussian``: whether a limit
    allows Gaussian noise.
    """

    epsilon: Decimal
    delta: Decimal = Decimal(0)
    rho: Decimal | None = None
    composition_delta: Decimal | None = None
    gaussian: bool = False

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        rho, composition = (
            None if body.get(name) is None else Decimal(body[name])
            for name in ("rho", "composition_delta")
        )
        epsilon = Decimal("Infinity" if body["epsilon"] is None else body["epsilon"])
        delta = Decimal(body.get("delta", "0"))
        return cls(epsilon, delta, rho, composition, body.get("gaussian", False))

    def __str__(self) -> str:
        if not self.epsilon.is_finite():
            return f"ρ = {self.rho:f}"
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


def loss(epsilon: Number | None, rho: Number | None) -> dict[str, str]:
    """The amount in the body of a query. Raises: ValueError unless there is exactly one."""
    if (epsilon is None) == (rho is None):
        raise ValueError("a query has either epsilon or rho")
    if rho is not None:
        return {"rho": decimal_text(rho)}
    assert epsilon is not None
    return {"epsilon": decimal_text(epsilon)}


def limit(
    epsilon: Number, delta: Number, composition_delta: Number = 0, gaussian: bool = False
) -> dict[str, Any]:
    """The request body of an allowance or a cap."""
    body: dict[str, Any] = {"epsilon": decimal_text(epsilon), "delta": decimal_text(delta)}
    composition = decimal_text(composition_delta)
    if Decimal(composition):
        body["composition_delta"] = composition
    if gaussian:
        body["gaussian"] = True
    return body
