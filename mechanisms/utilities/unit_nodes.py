"""What utilities of nodes share that an added edge raises by one at most and never lowers."""

from typing import ClassVar, Literal

from mechanisms.model.candidates import Candidates, graph_domain
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import ByRelation, SensitivityFacts
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work
from mechanisms.utilities.graphs import node_column, node_work
from mechanisms.utilities.utility import Grid, Measurement, Trend


class UnitNodeUtility:
    """u(v) is a whole number of at most the degree, in the column of its name; Δ = δ = 1."""

    name: str
    candidates = "nodes"
    relations = frozenset({NeighbouringRelation.EDGE})
    direction: Literal[1, -1] = 1
    trend: ClassVar[Trend] = Trend(value=1, sensitivity=0, growth=1)

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
        return Measurement.constant(node_column(records, self.name), grid)

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        return node_work(self, dataset, candidates, sensitivity)  # type: ignore[arg-type]  # a part

    def one_way(
        self, relation: NeighbouringRelation, sensitivity: Sensitivity
    ) -> Literal[-1, 0, 1]:
        return 1


def unit_facts(terms: str) -> ByRelation:
    """The sensitivity of such a utility; ``terms`` says what one edge does."""
    return {
        NeighbouringRelation.EDGE: SensitivityFacts(cap="1", function="1", horizon="1", terms=terms)
    }
