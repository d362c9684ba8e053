"""The true negative rate of a public decision tree."""

from __future__ import annotations

from typing import ClassVar

from mechanisms.kernels.forests import Confusion
from mechanisms.model.facts import ByRelation
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.rate_sensitivity import RATE_FACTS
from mechanisms.utilities.rates import Rate


class TrueNegativeRate(Rate):
    """u = TN/N: the share of records of all other classes that the tree labels as one of them."""

    name = "true_negative_rate"
    title = "True negative rate"
    description = "The share of all other classes that a tree labels as not positive."
    source = (
        "Differentially Private Multi-Objective Selection, section 6.2.3; Δ and δ as in "
        "mechanisms.utilities.rate_sensitivity."
    )
    sensitivity_facts: ClassVar[ByRelation] = RATE_FACTS

    def counted(self, counts: Confusion) -> tuple[Integers, int]:
        return counts.true_negatives, counts.negatives
