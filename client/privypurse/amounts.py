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
        return self._finite() + ("" if self.rho is None else f", ρ = {self.rho:f}")

    def _finite(self) -> str:
        return f"ε = {self.epsilon:f}" + (f", δ = {self.delta:f}" if self.delta else "")


class Charge(Amount):
    """The charge of one query. It states ρ always, and its text only if it has no finite ε."""

    __slots__ = ()

    def __str__(self) -> str:
        return self._finite() if self.epsilon.is_finite() else super().__str__()


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


def limit(epsilon: Number, delta: Number) -> dict[str, Any]:
    """The request body of a limit in ε and δ."""
    return {"epsilon": decimal_text(epsilon), "delta": decimal_text(delta)}


def composition(
    composition_delta: Number, *, gaussian: bool, allow_large_delta: bool
) -> dict[str, Any]:
    """The members of a request that let charges fit by ρ as well; none for 0 and False."""
    body: dict[str, Any] = {}
    text = decimal_text(composition_delta)
    if Decimal(text):
        body["composition_delta"] = text
    if gaussian:
        body["gaussian"] = True
    if allow_large_delta:
        body["allow_large_delta"] = True
    return body
