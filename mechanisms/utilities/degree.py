"""The degree of a node: one edge always moves it by exactly one."""

from typing import ClassVar, Literal

from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import (
    ByRelation,
    JointByRelation,
    JointFacts,
    SensitivityFacts,
    same_for_all,
)
from mechanisms.model.joint_influence import JointInfluence, Together
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work
from mechanisms.utilities.graphs import node_column, node_work
from mechanisms.utilities.utility import Grid, InnerChange, Measurement, Trend


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
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.EDGE: same_for_all(
            JointFacts(spread="min(k, 2) - max(0, k + 2 - n)", total="2", squares="2", one_way="up")
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

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        # The sensitivity function δ is constant, so a score is the degree itself, whichever form
        # of sensitivity is used.
        return Together(graph_domain(dataset).nodes, 1 << score_bits, moving=2)

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        return node_work(self, dataset, candidates, sensitivity)

    def inner_change(self, dataset: Dataset, grid: Grid) -> InnerChange:
        return InnerChange(0, 0)

    def one_way(
        self, relation: NeighbouringRelation, sensitivity: Sensitivity
    ) -> Literal[-1, 0, 1]:
        return 1

    def depends_on_degree(self, sensitivity: Sensitivity) -> bool:
        return True
