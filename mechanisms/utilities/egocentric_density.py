"""Egocentric density: the share of pairs of a node's neighbours that are adjacent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from mechanisms.kernels.long_division import scaled_floor
from mechanisms.kernels.spans import PrefixSums
from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import (
    BOTH_WAYS,
    ByRelation,
    JointByRelation,
    JointFacts,
    SensitivityFacts,
)
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import Work
from mechanisms.utilities.covering import ClosedForm
from mechanisms.utilities.edge_influence import edge_influence
from mechanisms.utilities.graphs import DEGREES, node_column, node_work
from mechanisms.utilities.utility import (
    Grid,
    InnerChange,
    Measurement,
    Trend,
    both_ways,
    finest_bits,
)

FINEST = 32
#: A new edge raises the density of inner nodes, which are the common neighbours of its two ends.
#: They keep their degree, and so their sensitivity function δ.
_INNER_RISE = JointFacts(
    spread="2 for j = 1, else j + 2", total="min(D + 1, n)", squares="min(D + 1, n)", one_way="no"
)


class EgocentricDensity:
    """u(v) = 2E / (d(d − 1)) for d neighbours with E edges among them, and 0 for d < 2.

    Δ = 1, δ(t) = 2 / max(d − t, 2).
    """

    name = "egocentric_density"
    title = "Egocentric density"
    description = "The share of pairs of a node's neighbours that are joined by an edge."
    source = (
        "Differentially Private Multi-Objective Selection, section 7.3; δ is the smallest "
        "admissible function of the degree, in place of Lemma 7.2 (not monotone as printed)."
    )
    candidates = "nodes"
    relations = frozenset({NeighbouringRelation.EDGE})
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = {
        NeighbouringRelation.EDGE: SensitivityFacts(
            cap="1",
            function="2 / max(d - t, 2)",
            horizon="max(D - 1, 1)",
            terms="d: the node's degree; D: max_degree; 0 at d = 0, t = 0",
        )
    }
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.EDGE: {
            Sensitivity.GLOBAL: _INNER_RISE,
            Sensitivity.LOCAL: _INNER_RISE,
            Sensitivity.FLATTENED: BOTH_WAYS,
            Sensitivity.SHIFTED: _INNER_RISE,
        }
    }
    trend = Trend(value=-1, sensitivity=-1)

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        bound = graph_domain(dataset).max_degree
        horizon = max(bound - 1, 1)
        units = horizon if sensitivity is Sensitivity.SHIFTED else 1
        bits = finest_bits(units, FINEST, DEGREES)
        # A pair of neighbours needs two of them. So every density is 0 if the public bound on
        # degrees is below 2.
        unit = 1 << bits if bound >= 2 else 0
        return Grid(bits=bits, cap=max(1, unit), horizon=horizon, largest=unit)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        degree = node_column(records, "degree")
        inner = node_column(records, "inner_edges")
        # A node with fewer than two neighbours has no edge among them. The divisor 1 then gives the
        # correct density 0.
        pairs = np.maximum(degree * (degree - 1), 1)
        utilities = scaled_floor(2 * inner, pairs, grid.bits)
        if sensitivity is Sensitivity.GLOBAL or grid.largest == 0:
            return Measurement.constant(utilities, grid)
        return Measurement(utilities, DensitySensitivity.of(degree, dataset, grid))

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        return node_work(self, dataset, candidates, sensitivity)

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        if sensitivity is Sensitivity.FLATTENED:
            return both_ways(dataset, candidates, score_bits)
        # A common neighbour of the new edge's ends keeps its degree and so its sensitivity function
        # δ. So its dampened score rises as its density does, by at most one unit.
        return edge_influence(dataset, self.inner_change(dataset, grid), grid.cap, score_bits)

    def inner_change(self, dataset: Dataset, grid: Grid) -> InnerChange:
        """An inner node of degree 2 goes from 0 to 1."""
        return InnerChange(fall=0, rise=grid.cap)

    def depends_on_degree(self, sensitivity: Sensitivity) -> bool:
        return sensitivity is not Sensitivity.FLATTENED


@dataclass(frozen=True)
class DensitySensitivity(ClosedForm):
    """δ(t) = ⌈2^{g+1} / max(d − t, 2)⌉ in steps of 2^−g, for a node of degree d.

    For d = t = 0 it is one step, because one edge makes no pair of neighbours. The bound is
    attained: if the neighbourhood is a star, removing the edge to its hub moves u from 2/d to 0.
    """

    degree: Integers
    #: The sensitivity function δ in grid steps, as a list by d − t for degree d and distance t, up
    #: to the public bound on degrees. Entries 0 and 1 equal entry 2, because δ(t) is 2 / max(d − t,
    #: 2).
    steps: Integers
    cap: int
    horizon: int

    @classmethod
    def of(cls, degree: Integers, dataset: Dataset, grid: Grid) -> DensitySensitivity:
        fewer = np.maximum(np.arange(graph_domain(dataset).max_degree + 1, dtype=np.int64), 2)
        steps = -(-(2 << grid.bits) // fewer)
        return cls(degree.astype(np.int64), steps, grid.cap, grid.horizon)

    @property
    def count(self) -> int:  # type: ignore[override]
        return self.degree.size

    @cached_property
    def _sums(self) -> PrefixSums:
        """Sums of the steps by falling d − t, from the largest degree on."""
        return PrefixSums.of(self.steps[::-1])

    def before(self, t: Integers) -> Integers:
        start = self.steps.size - 1 - self.degree
        # For a node without neighbours the sensitivity δ(0) is 1 step, but the list of sums
        # contains the cap, the largest δ, in its place. So the difference is subtracted from sums
        # that include δ(0).
        missing = (self.degree == 0) * (t > 0) * (self.cap - 1)
        sums: Integers = self._sums.between(start, start + t) - missing
        return sums

    def at(self, t: int | Integers, candidates: Integers) -> Integers:
        degree = self.degree[candidates]
        steps = self.steps[np.maximum(degree - t, 2)]
        return np.where((degree == 0) & np.equal(t, 0), 1, steps)

    def widest(self, t: Integers) -> Integers:
        # The sensitivity δ(t) is largest for the node of the lowest degree. The exception is δ(0),
        # which is one step for nodes without neighbours.
        lowest, top = int(self.degree.min()), self.steps.size - 1
        connected = int(np.where(self.degree > 0, self.degree, top).min())
        first = self.steps[max(connected, 2)] if self.degree.any() else 1
        return np.where(t == 0, first, self.steps[np.maximum(lowest - t, 2)])
