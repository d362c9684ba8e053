"""Quotes: the charge and the accuracy of a query, free because they are public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from privypurse.amounts import Charge
from privypurse.notebook import paragraph, table


@dataclass(frozen=True)
class Quote:
    """The charge of a query, the steps that it is spent on, and the accuracy to expect.

    ``affordable``: whether the charge fits the analyst's account and the dataset's cap now.
    ``reason``: which account would refuse it and why, in words; None if it fits, and from older
    services.
    ``resolved``: what the service takes for fields that are ``auto`` or left out.
    ``order_preserving``: whether scores follow the order of the utilities; None for queries that
    select nothing. ``seconds``: from the begin of the query to its deadline, at which its answer
    leaves; None from older services.
    ``fits_more``: how many such queries fit one after another, if nothing else is charged; None if
    nothing bounds them, and from older services.
    """

    charge: Charge
    steps: list[Mapping[str, Any]]
    accuracy: Mapping[str, Any]
    affordable: bool
    resolved: Mapping[str, str] = field(default_factory=dict)
    order_preserving: bool | None = None
    seconds: float | None = None
    fits_more: int | None = None
    reason: str | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        charge = Charge.of(body["charge"])
        return cls(
            charge,
            body["steps"],
            body["accuracy"],
            body["affordable"],
            body.get("resolved", {}),
            body.get("order_preserving"),
            body.get("seconds"),
            body.get("fits_more"),
            body.get("reason"),
        )

    def _after(self) -> str:
        return "" if self.seconds is None else f", {self.seconds:g} s after it begins"

    def _repr_html_(self) -> str:
        rows = [
            [step["what"], _each(step), step["times"], step["composition"]] for step in self.steps
        ]
        refused = f"not affordable: {self.reason}" if self.reason else "not affordable"
        fits = "affordable" if self.affordable else refused
        if self.fits_more is not None and self.affordable:
            fits = f"{self.fits_more} such queries fit"
        return (
            paragraph(f"{self.charge}{self._after()}, {fits}")
            + table(["step", "each", "times", "composition"], rows)
            + table(["accuracy", ""], self.accuracy.items())
            + (table(["chosen", ""], self.resolved.items()) if self.resolved else "")
        )


def _each(step: Mapping[str, Any]) -> str:
    """The loss of one step; steps of Gaussian noise have no finite ε and state ρ."""
    return f"ρ = {step['rho']}" if step["epsilon"] is None else f"ε = {step['epsilon']}"
