"""Egocentric betweenness: the share of shortest paths among its neighbours that cross a node."""

from typing import ClassVar, Literal

from mechanisms.kernels.graphs.egocentric import GRID_BITS, LARGEST_DEGREE
from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.facts import ByRelation, JointByRelation, JointFacts, SensitivityFacts
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work
from mechanisms.utilities.betweenness_sensitivity import CoDegreeForm, DegreeForm
from mechanisms.utilities.edge_influence import all_fall, edge_influence
from mechanisms.utilities.graphs import DEGREES, node_column, node_work
from mechanisms.utilities.utility import Grid, InnerChange, Measurement, Trend, finest_bits

_DEGREE_FORM = JointFacts(
    spread="2 for j = 1, else 2 + j D/(2Δ), with Δ = g(D - 1)",
    total="2 + min(D - 1, n - 2) D/(2Δ): at most 4 + 4/(D - 2) from D = 6 on",
    squares="2 + min(D - 1, n - 2) (D/(2Δ))^2: at most 2 + 4 D^2/((D - 1) (D - 2)^2) from D = 6 on",
    one_way="no",
)
#: A new edge may raise the number c of neighbours that nodes share, or the largest sensitivity δ,
#: for every node. A larger δ lowers the score, so all scores but those of the edge's ends may fall.
_OTHERS_FALL = JointFacts(spread="2 for j = 1, else j + 2", total="n", squares="n", one_way="no")


class EgocentricBetweenness:
    """u(v) = Σ 1/(1 + |N(a) ∩ N(b) ∩ N(v)|), where N(x) is the set of neighbours of x.

    The sum runs over the pairs a, b of neighbours of v that no edge joins.
    """

    name = "egocentric_betweenness"
    title = "Egocentric betweenness"
    description = (
        "The betweenness of a node in the graph of itself and its neighbours: the sum, over "
        "pairs of neighbours not joined by an edge, of its share of their shortest paths."
    )
    source = (
        "Local Dampening, PVLDB 14(4), 2021, Definitions 5.1 and 5.3; Δ and δ as in "
        "mechanisms.utilities.betweenness_sensitivity."
    )
    candidates = "nodes"
    relations = frozenset({NeighbouringRelation.EDGE})
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = {
        NeighbouringRelation.EDGE: SensitivityFacts(
            cap="g(D - 1), g(k) = max(k(k - 1)/4, k)",
            function=(
                "shifted: g(min(d + t, D - 1)); local, flattened: max(min(d + t, D - 1), "
                "m(m - 1)/4), m = min(c + t, d + t, D - 1)"
            ),
            horizon="max(D, 1)",
            terms=(
                "d: the node's degree; D: max_degree; c: the largest number of neighbours it "
                "shares with another node"
            ),
        )
    }
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.EDGE: {
            Sensitivity.GLOBAL: _DEGREE_FORM,
            Sensitivity.LOCAL: _OTHERS_FALL,
            Sensitivity.FLATTENED: _OTHERS_FALL,
            Sensitivity.SHIFTED: _DEGREE_FORM,
        }
    }
    trend = Trend(value=1, sensitivity=1, growth=2)

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        bound = graph_domain(dataset).max_degree
        pairs = bound * (bound - 1) // 2
        if bound > LARGEST_DEGREE:
            raise UnsupportedQuery(
                f"egocentric betweenness is exact up to a max_degree of {LARGEST_DEGREE}",
                supported={"max_degree": LARGEST_DEGREE},
            )
        horizon = max(bound, 1)
        top = max(bound - 1, 0)
        quarters = max(top * (top - 1), 4 * top)
        sums = horizon * -(-quarters // 4) if sensitivity is Sensitivity.SHIFTED else 0
        bits = finest_bits(max(pairs, sums), GRID_BITS, DEGREES)
        cap = max(1, -(-(quarters << bits) // 4))
        return Grid(bits=bits, cap=cap, horizon=horizon, largest=pairs << bits)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        stored = node_column(records, "egocentric_betweenness")
        # The prepared column of utilities rounds the term of each pair of neighbours separately. So
        # one edge moves a rounded utility, too, by at most the sensitivity δ(0) of its node. The
        # right shift rounds down and keeps this bound.
        utilities = stored >> (GRID_BITS - grid.bits)
        bound = graph_domain(dataset).max_degree
        if sensitivity is Sensitivity.GLOBAL:
            return Measurement.constant(utilities, grid)
        degree = node_column(records, "degree")
        if sensitivity is Sensitivity.SHIFTED:
            # A score in the mode ``shifted`` depends on the values of the sensitivity function δ
            # themselves. For this, the δ that reads the degree alone is more accurate than the δ
            # that reads shared neighbours.
            return Measurement(utilities, DegreeForm.of(degree, bound, grid.bits))
        shared = node_column(records, "co_degree")
        return Measurement(utilities, CoDegreeForm.of(degree, shared, bound, grid.bits))

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        if sensitivity in (Sensitivity.LOCAL, Sensitivity.FLATTENED):
            return all_fall(dataset, score_bits)
        return edge_influence(dataset, self.inner_change(dataset, grid), grid.cap, score_bits)

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        return node_work(self, dataset, candidates, sensitivity)

    def inner_change(self, dataset: Dataset, grid: Grid) -> InnerChange:
        """An edge {a, b} inside N(v) takes the pair {a, b}, at most 2^g steps. Of every other
        neighbour it takes at most half of one pair. Together that is at most D·2^(g − 1)."""
        return InnerChange(fall=-(-(graph_domain(dataset).max_degree << grid.bits) // 2), rise=0)

    def depends_on_degree(self, sensitivity: Sensitivity) -> bool:
        return sensitivity in (Sensitivity.GLOBAL, Sensitivity.SHIFTED)
