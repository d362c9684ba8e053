"""Quotes: the charge and the accuracy of a query, free because they are public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from privypurse.amounts import Amount
from privypurse.notebook import paragraph, table


@dataclass(frozen=True)
class Quote:
    """The charge of a query, the steps that it is spent on, and the accuracy to expect.

    ``affordable``: whether the charge fits the analyst's account and the dataset's cap now.
    """

    charge: Amount
    steps: list[Mapping[str, Any]]
    accuracy: Mapping[str, Any]
    affordable: bool

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        charge = Amount.of(body["charge"])
        return cls(charge, body["steps"], body["accuracy"], body["affordable"])

    def _repr_html_(self) -> str:
        rows = [
            [step["what"], step["epsilon"], step["times"], step["composition"]]
            for step in self.steps
        ]
        fits = "affordable" if self.affordable else "not affordable"
        return (
            paragraph(f"{self.charge}, {fits}")
            + table(["step", "ε each", "times", "composition"], rows)
            + table(["accuracy", ""], self.accuracy.items())
        )
