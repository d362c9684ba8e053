"""The degree of a node: one edge moves it by one, everywhere and always."""

from __future__ import annotations

from typing import ClassVar, Literal

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation, SensitivityFacts
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import ConstantSensitivity, Sensitivity
from mechanisms.utilities.graphs import graph_domain, node_column
from mechanisms.utilities.trend import Trend
from mechanisms.utilities.utility import Grid, Measured


class Degree:
    """u(v) = the number of neighbours; Δ = δ = 1 (0 where no edge is possible)."""

    name = "degree"
    title = "Degree"
    description = "The number of neighbours of a node."
    source = "One edge changes two degrees by one each."
    candidates = "nodes"
    relations = frozenset({NeighbouringRelation.EDGE})
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = {
        NeighbouringRelation.EDGE: SensitivityFacts(
            cap="1", function="1", horizon="1", terms="an edge more or less at the node"
        )
    }
    trend = Trend(value=1, sensitivity=0, growth=1)

    def grid(
        self,
        dataset: Dataset,
        candidates: Candidates,  # noqa: ARG002 - every node is bounded alike
        sensitivity: Sensitivity,  # noqa: ARG002 - the same grid for all
    ) -> Grid:
        return Grid(bits=0, cap=1, horizon=1, largest=graph_domain(dataset).max_degree)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,  # noqa: ARG002 - δ has one form
        grid: Grid,
    ) -> Measured:
        degree = node_column(records, "degree")
        return Measured(degree, ConstantSensitivity(grid.cap, candidates.count(dataset)))
