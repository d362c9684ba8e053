"""The degree of a node: one edge always moves it by exactly one."""

from typing import ClassVar

from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation, JointByRelation, JointFacts, same_for_all
from mechanisms.model.joint_influence import JointInfluence, Together
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.utilities.unit_nodes import UnitNodeUtility, unit_facts
from mechanisms.utilities.utility import Grid, InnerChange


class Degree(UnitNodeUtility):
    """u(v) = the number of neighbours; Δ = δ = 1, and 0 where no edge is possible."""

    name = "degree"
    title = "Degree"
    description = "The number of neighbours of a node."
    source = "One edge changes two degrees by one each."
    sensitivity_facts: ClassVar[ByRelation] = unit_facts("an edge more or less at the node")
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.EDGE: same_for_all(
            JointFacts(spread="min(k, 2) - max(0, k + 2 - n)", total="2", squares="2", one_way="up")
        )
    }

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        # The sensitivity function δ is constant, so a score is the degree itself, whichever form of
        # sensitivity is used. An edge moves the degrees of its two ends.
        return Together(graph_domain(dataset).nodes, 1 << score_bits, moving=2)

    def inner_change(self, dataset: Dataset, grid: Grid) -> InnerChange:
        return InnerChange(0, 0)

    def depends_on_degree(self, sensitivity: Sensitivity) -> bool:
        return True
