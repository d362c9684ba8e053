"""The h-index of a node: of the degrees of its neighbours."""

from typing import ClassVar

from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation, JointByRelation, JointFacts, same_for_all
from mechanisms.model.joint_influence import Few, JointInfluence
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.utilities.unit_nodes import UnitNodeUtility, unit_facts
from mechanisms.utilities.utility import Grid


class HIndex(UnitNodeUtility):
    """u(v) = the largest h such that h neighbours of v have a degree of at least h; Δ = δ = 1.

    An added edge gives each end one neighbour more, and raises one or two degrees among the
    neighbours of other nodes by one. Either raises u by one at most, and only near the ends.
    """

    name = "h_index"
    title = "h-index"
    description = "The largest h such that h neighbours of the node have h neighbours or more."
    source = (
        "Korn, Schubert, Telcs 2009 (lobby index); Δ and the joint influence are proved in "
        "docs/dev/theory/selection.md, Theorem 9.3."
    )
    sensitivity_facts: ClassVar[ByRelation] = unit_facts(
        "an edge moves its ends and their neighbours"
    )
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.EDGE: same_for_all(
            JointFacts(spread="min(j, 2D)", total="min(2D, n)", squares="min(2D, n)", one_way="up")
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
        domain = graph_domain(dataset)
        # One edge moves only the scores of its two ends and of their neighbours. Each end has at
        # most D − 1 neighbours beside the other end, D the public bound on degrees.
        return Few(domain.nodes, 1 << score_bits, moving=2 * max(domain.max_degree, 1))
