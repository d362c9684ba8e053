"""The true positive rate of a public decision tree."""

from __future__ import annotations

from typing import ClassVar

from mechanisms.kernels.forests import Confusion
from mechanisms.model.facts import ByRelation
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.rate_sensitivity import RATE_FACTS
from mechanisms.utilities.rates import Rate


class TruePositiveRate(Rate):
    """u = TP/P: the share of records of the positive class that the tree labels as positive."""

    name = "true_positive_rate"
    title = "True positive rate"
    description = "The share of the positive class that a tree labels as positive."
    source = (
        "Differentially Private Multi-Objective Selection, section 6.2.3; Δ and δ as in "
        "mechanisms.utilities.rate_sensitivity."
    )
    sensitivity_facts: ClassVar[ByRelation] = RATE_FACTS

    def counted(self, counts: Confusion) -> tuple[Integers, int]:
        return counts.true_positives, counts.positives
