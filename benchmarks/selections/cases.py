"""What benches of selections share: real graphs under public bounds, scores, expected shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

import numpy as np

from benchmarks.data.graphs import graph_dataset, graph_records, read_edge_list
from benchmarks.result import Estimate, exact
from benchmarks.selections.inclusion import shares
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, GraphDomain
from mechanisms.model.records import GraphRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.rate import score_bits
from mechanisms.objectives import OBJECTIVES, Objective, Term
from mechanisms.selection.dampening import scores
from mechanisms.selection.top_k import plan
from mechanisms.utilities import UTILITIES

#: Public bounds on the node degrees of the papers' graphs. They are round numbers that no degree
#: exceeds.
BOUNDS = {"github": 10_000, "enron": 2_000, "dblp": 500}
_ALL_BOUNDS = {**BOUNDS, "gowalla": 20_000}
UTILITY = "egocentric_betweenness"
#: The values of ε at which the recall of selections by this utility is computed.
EPSILONS = [float(f"{base}e{power}") for power in range(-3, 4) for base in (1, 3)] + [1e4]


@dataclass(frozen=True)
class Case:
    """One graph under one public degree bound."""

    name: str
    dataset: Dataset
    records: GraphRecords

    @property
    def bound(self) -> int:
        assert isinstance(self.dataset.domain, GraphDomain)
        return self.dataset.domain.max_degree

    def scores(self, objective: Objective, sensitivity: Sensitivity, k: int) -> Integers:
        """The scores of all nodes for k draws, on the grid of ``score_bits(k)``."""
        public = plan(self.dataset, AllNodes(), objective, sensitivity, k)
        measured = objective.measure(
            self.records, self.dataset, AllNodes(), sensitivity, public.grid
        )
        assert public.score_bits == score_bits(k)
        return scores(measured, public.grid, sensitivity, public.score_bits, objective.direction)

    def utilities(self, objective: Objective) -> Integers:
        """The true utilities of all nodes, in steps of the grid of ``global``."""
        whole = Sensitivity.GLOBAL
        grid = objective.grid(self.dataset, AllNodes(), whole)
        return objective.measure(self.records, self.dataset, AllNodes(), whole, grid).utilities

    def lines(
        self, objective: Objective, k: int, epsilons: Sequence[float], nodes: Integers
    ) -> dict[str, list[Estimate]]:
        """By sensitivity and ε, the expected share of these nodes among the k drawn."""
        return {
            str(s): exact(shares(self.scores(objective, s, k), epsilons, k, nodes))
            for s in Sensitivity
        }


def case_of(folder: Path, name: str, bounded: bool = True) -> Case:
    """A real graph under its bound, or under none, nodes − 1."""
    records = _records(folder, name)
    nodes = len(records.indptr) - 1
    return Case(name, graph_dataset(name, nodes, _ALL_BOUNDS[name] if bounded else None), records)


@lru_cache(maxsize=1)
def _records(folder: Path, name: str) -> GraphRecords:
    return graph_records(read_edge_list(folder, name))


def objective_of(name: str, weights: Mapping[str, str | None]) -> Objective:
    """An objective of registered utilities, each with its weight where it has one."""
    return OBJECTIVES[name](
        [
            Term(UTILITIES[utility], None if weight is None else Decimal(weight))
            for utility, weight in weights.items()
        ]
    )


BETWEENNESS = objective_of("single", {UTILITY: None})


def true_order(case: Case) -> Integers:
    """All nodes by falling betweenness, ties in the public order."""
    return np.argsort(-case.records.columns[UTILITY], kind="stable")
