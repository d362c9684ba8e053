"""The core number of a node: an edge more raises those of any nodes, by one at most."""

from typing import ClassVar

from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation, JointByRelation, JointFacts, same_for_all
from mechanisms.model.joint_influence import Independent, JointInfluence
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.utilities.unit_nodes import UnitNodeUtility, unit_facts
from mechanisms.utilities.utility import Grid


class CoreNumber(UnitNodeUtility):
    """u(v) = the largest k of a subgraph with v in it whose degrees are all at least k; Δ = δ = 1.

    An added edge lowers no u. A subgraph whose degrees are at least k keeps degrees of at least
    k − 1 when an edge goes, so no u falls by more than 1.
    """

    name = "core_number"
    title = "Core number"
    description = "The largest k of a group of nodes, this one in it, that all join k others of it."
    source = (
        "Seidman 1983; Δ and the joint influence are proved in docs/dev/theory/selection.md, "
        "Theorem 9.2."
    )
    sensitivity_facts: ClassVar[ByRelation] = unit_facts(
        "an edge that closes a ring moves all of it"
    )
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.EDGE: same_for_all(
            JointFacts(spread="j", total="n", squares="n", one_way="up")
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
        # One edge may move every score: if it joins the ends of a path, the core number of every
        # node of the path rises from 1 to 2.
        return Independent(graph_domain(dataset).nodes, 1 << score_bits, both_ways=False)
