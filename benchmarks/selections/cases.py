"""What benches of selections share: real graphs under public bounds, scores, repeated draws.

The draws are the service's own. Candidates whose score is so far below the best k that all of
them together are drawn with probability below 10⁻⁹ are left out of a repetition's draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.data.graphs import read_edge_list
from benchmarks.simulation import randomness
from mechanisms.kernels.graph import compressed_rows
from mechanisms.kernels.preparation import prepare_graph
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.rate import score_bits
from mechanisms.objectives import OBJECTIVES, Objective, Term
from mechanisms.selection import SELECTORS
from mechanisms.selection.dampening import scores
from mechanisms.selection.top_k import plan
from mechanisms.utilities import UTILITIES

#: Public bounds on degrees, chosen round.
BOUNDS = {"github": 10_000, "enron": 2_000, "dblp": 500}

Floats = NDArray[np.float64]


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
        found = objective.measure(self.records, self.dataset, AllNodes(), sensitivity, public.grid)
        assert public.score_bits == score_bits(k)
        return scores(found, public.grid, sensitivity, public.score_bits, objective.direction)

    def utilities(self, objective: Objective) -> Integers:
        """The true utilities of all nodes, in steps of the grid of ``global``."""
        whole = Sensitivity.GLOBAL
        grid = objective.grid(self.dataset, AllNodes(), whole)
        return objective.measure(self.records, self.dataset, AllNodes(), whole, grid).utilities


def cases(folder: Path, names: Sequence[str], bounded: Sequence[bool] = (True,)) -> Iterator[Case]:
    """Each graph under its bound, or under none, nodes − 1, or under both."""
    for name in names:
        sources, targets, nodes = read_edge_list(folder, name)
        indptr, indices = compressed_rows(sources, targets, nodes)
        records = GraphRecords(indptr, indices, prepare_graph(indptr, indices, Inline()))
        for is_bounded in bounded:
            domain = GraphDomain(nodes, BOUNDS[name] if is_bounded else nodes - 1)
            yield Case(name, Dataset(name, NeighbouringRelation.EDGE, domain), records)


def objective_of(name: str, weights: Mapping[str, str | None]) -> Objective:
    """An objective of registered utilities, each with its weight where it has one."""
    return OBJECTIVES[name](
        [
            Term(UTILITIES[utility], None if weight is None else Decimal(weight))
            for utility, weight in weights.items()
        ]
    )


def repeated_draws(found: Integers, k: int, epsilon: float, times: int) -> Integers:
    """The k candidates of each of ``times`` private selections, in order drawn, (times, k)."""
    bits = score_bits(k)
    kept = likely(found, bits, k, epsilon)
    loss = PrivacyLoss.parse(repr(epsilon))
    selector, source = SELECTORS["permute_and_flip"], randomness()
    drawn = [
        kept[selector.top(found[kept], bits, loss, k, "peeled", source, Inline())]
        for _ in range(times)
    ]
    return np.array(drawn, dtype=np.int64)


def likely(found: Integers, bits: int, k: int, epsilon: float) -> Integers:
    """Indices of candidates that can be drawn but with probability 10⁻⁹ in all."""
    rate = epsilon / k / 2 ** (bits + 1)
    floor = np.partition(found, -k)[-k] - np.log(found.size * k * 1e9) / rate
    return np.flatnonzero(found >= floor)
