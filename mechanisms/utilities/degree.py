"""The degree of a node: one edge always moves it by exactly one."""

from typing import ClassVar, Literal

from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation, SensitivityFacts
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.utilities.graphs import node_column
from mechanisms.utilities.utility import Grid, Measurement, Trend


class Degree:
    """u(v) = the number of neighbours; Δ = δ = 1, and 0 where no edge is possible."""

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

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        return Grid(bits=0, cap=1, horizon=1, largest=graph_domain(dataset).max_degree)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        return Measurement.constant(node_column(records, "degree"), grid)
