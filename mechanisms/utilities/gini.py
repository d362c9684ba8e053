"""Gini: the impurity of the class within the levels of an attribute, times the records."""

from typing import ClassVar

import numpy as np

from mechanisms.kernels.long_division import scaled_floor
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.facts import ByRelation, SensitivityFacts
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.impurity import LEVEL_TERMS, Impurity
from mechanisms.utilities.tables import ROWS
from mechanisms.utilities.utility import Grid, finest_bits

FINEST = 32


class Gini(Impurity):
    """u(A) = −Σ_j (τ_j − Σ_c τ_jc² / τ_j); Δ = 2 − 2/N for at most N rows.

    Level j of A has τ_j records, τ_jc of them in class c; empty levels add nothing. Each level is
    rounded separately: a record moves one level, a replacement two in opposite directions. δ is the
    maximum over levels of 2M²/((M + Q)(M + Q + 1)); ``kernels.rarest_class`` defines M and Q.
    """

    name = "gini"
    title = "Gini index"
    description = "How pure the class is within the levels of an attribute, summed over records."
    source = "Friedman and Schuster, KDD 2010, section 4; Δ and δ from the exact change of a cell."
    sensitivity_facts: ClassVar[ByRelation] = {
        NeighbouringRelation.ADD_REMOVE: SensitivityFacts(
            cap="2 - 2/N",
            function=(
                "max over levels of 2M^2 / ((M + Q)(M + Q + 1)), M = m + t - i, Q = b - i, "
                "i = min(t, b)"
            ),
            horizon="N",
            terms=f"N: max_rows; {LEVEL_TERMS}",
        ),
        NeighbouringRelation.REPLACE: SensitivityFacts(
            cap="2 - 2/N",
            function=(
                "max over levels of 2M^2 / ((M + Q)(M + Q + 1)), M = m + t, Q = max(b - t, 0)"
            ),
            horizon="N",
            terms=f"N: rows; {LEVEL_TERMS}",
        ),
    }

    def table_grid(self, rows: int) -> Grid:
        bits = finest_bits(2 * rows, FINEST, ROWS)
        cap = -(-(rows - 1 << bits + 1) // rows)
        return Grid(bits=bits, cap=max(cap, 1), horizon=rows, largest=rows << bits)

    def levels(self, rows: Integers, sums: Integers, bits: int) -> Integers:
        """−⌈2^bits · (τ² − Σ_c τ_c²) / τ⌉ for each level, τ the sum of its class counts τ_c."""
        totals = rows.sum(axis=1)
        differ = totals * totals - (rows * rows).sum(axis=1)
        return scaled_floor(-differ, np.maximum(totals, 1), bits)
