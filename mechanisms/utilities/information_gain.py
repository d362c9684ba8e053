"""Information gain: the information of an attribute about the class, in bits times records.

For a fixed class attribute, gain and mutual information differ from −τ·H(C|A) by terms that are
equal for all attributes. So one implementation serves both.
"""

from typing import ClassVar

from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation, SensitivityFacts
from mechanisms.model.sensitivity import Integers
from mechanisms.utilities.entropy_table import FINEST, check_rows, entropy_sums, increments
from mechanisms.utilities.impurity import LEVEL_TERMS, Impurity
from mechanisms.utilities.tables import ROWS, row_bound
from mechanisms.utilities.utility import Grid, finest_bits


class InformationGain(Impurity):
    """u(A) = Σ_j [Σ_c φ(τ_jc) − φ(τ_j)] = −τ·H(C|A), φ(x) = x·log₂x; Δ = ψ(N − 1).

    Level j of A has τ_j records, τ_jc of them in class c; empty cells count as well. N is the
    public bound on rows (add/remove) or their public number (replace); T = N. At a node of a
    decision tree the counts are of its records, and N stays the same.
    """

    name = "information_gain"
    title = "Information gain"
    description = "How many bits of the class an attribute tells, summed over the records."
    source = (
        "Local Dampening, PVLDB 14(4), 2021, section 5.2, with the sign of equation 2 put right "
        "and δ without the guard of Algorithm 3, which is not admissible."
    )
    sensitivity_facts: ClassVar[ByRelation] = {
        NeighbouringRelation.ADD_REMOVE: SensitivityFacts(
            cap="psi(N - 1), psi(x) = (x + 1) log2(x + 1) - x log2(x)",
            function="max over levels of psi(m + b + t - 2i) - psi(b - i), i = min(t, b)",
            horizon="N",
            terms=f"N: max_rows; {LEVEL_TERMS}",
        ),
        NeighbouringRelation.REPLACE: SensitivityFacts(
            cap="psi(N - 1), psi(x) = (x + 1) log2(x + 1) - x log2(x)",
            function="max over levels of psi(m + t + q) - psi(q), q = max(b - t, 0)",
            horizon="N",
            terms=f"N: rows; {LEVEL_TERMS}",
        ),
    }

    def table_grid(self, rows: int) -> Grid:
        check_rows(rows)
        # For N rows, no increment ψ of x·log₂x exceeds ψ(N − 1) < log₂N + 3/2. So the sum of all N
        # increments, and every sum of N values of the sensitivity function δ, is below N·(log₂N +
        # 3/2). It must fit into 64 bits.
        bits = finest_bits(rows * (rows.bit_length() + 2), FINEST, ROWS)
        cap = int(increments(rows - 1, rows, bits)[0])
        return Grid(bits=bits, cap=max(cap, 1), horizon=rows, largest=rows * cap)

    def prepared(self, dataset: Dataset, grid: Grid) -> Integers:
        """The table Φ[0 … N] of ``entropy_table``."""
        return entropy_sums(row_bound(dataset), grid.bits)

    def levels(self, rows: Integers, sums: Integers, bits: int) -> Integers:
        """Σ_c φ(τ_c) − φ(τ) for each level, where τ is the sum of its class counts τ_c."""
        differ: Integers = sums[rows].sum(axis=1) - sums[rows.sum(axis=1)]
        return differ


class MutualInformation(InformationGain):
    """N·I(A; C) less N·H(C), which is the same for every attribute, so the order is the same."""

    name = "mutual_information"
    title = "Mutual information"
    description = (
        "The mutual information of an attribute and the class, up to what is equal for all "
        "attributes: the same selection as by information gain."
    )
    source = (
        "Differentially private distance learning in categorical data, DAMI 2021, section 4.3, "
        "with the exact sensitivity; δ as for information gain."
    )
