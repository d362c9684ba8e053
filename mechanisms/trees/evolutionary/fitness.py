"""The fitness of trees: an objective of their true positive and true negative rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np

from mechanisms.kernels.forests import Confusion
from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.records import PrefixRecords, Records
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.objectives import OBJECTIVES, Objective, ParallelObjective, Term, WeightedSum
from mechanisms.selection.dampening import score_bound, scores
from mechanisms.utilities.rates import Rate
from mechanisms.utilities.true_negative_rate import TrueNegativeRate
from mechanisms.utilities.true_positive_rate import TruePositiveRate
from mechanisms.utilities.utility import Grid, Measurement

RATES: dict[str, Rate] = {rate.name: rate for rate in (TruePositiveRate(), TrueNegativeRate())}

#: The sensitivities that the search supports.
SENSITIVITIES = (Sensitivity.GLOBAL, Sensitivity.LOCAL)


@dataclass(frozen=True)
class Pool:
    """A number of trees to select from, known only to the search. Implements ``Candidates``."""

    size: int
    kind: str = "trees"

    def count(self, dataset: Dataset) -> int:
        return self.size

    def label(self, dataset: Dataset, index: int) -> int:
        return index


@dataclass(frozen=True)
class CountedRate:
    """A rate of trees that are already evaluated. Implements ``Objective`` and
    ``ExclusiveUtility``."""

    rate: Rate
    #: The private counts; None where only public facts are needed.
    counts: Confusion | None = None
    candidates: str = "trees"

    @property
    def relations(self) -> frozenset[NeighbouringRelation]:
        return self.rate.relations

    @property
    def direction(self) -> Literal[1, -1]:
        return self.rate.direction

    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:
        return self.rate.exclusive(dataset)

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        return self.rate.rate_grid(dataset)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        assert self.counts is not None, "rates are measured after the trees were counted"
        hits, total = self.rate.counted(self.counts)
        return self.rate.of_counts(hits, np.full(hits.shape, total), dataset, sensitivity, grid)


@dataclass(frozen=True)
class Fitness:
    """``pareto``: few trees are better in both rates; ``weighted_sum``: with ``weights``.

    Under ``local``, δ is that of the rates. Under add/remove it is that of the larger term only,
    because a record has one class.
    """

    objective: Literal["pareto", "weighted_sum"]
    weights: Mapping[str, Decimal]
    sensitivity: Sensitivity

    def grid(self, dataset: Dataset, pool: int, score_bits: int) -> Grid:
        """The public grid for a pool of this size. Raises: UnsupportedQuery when none fits 64
        bits."""
        if self.sensitivity not in SENSITIVITIES:
            raise UnsupportedQuery(
                "trees are selected by global or local sensitivity",
                supported={"sensitivity": [str(name) for name in SENSITIVITIES]},
            )
        grid = self._objective(None).grid(dataset, Pool(pool), self.sensitivity)
        if max(grid.cap, grid.largest, score_bound(grid, score_bits)) >= LIMIT:
            raise UnsupportedQuery("the public bounds of this dataset exceed exact arithmetic")
        return grid

    def unit(self, dataset: Dataset, pool: int) -> tuple[Grid, float]:
        """The grid, and how many of its units one unit of the objective is; public."""
        objective = self._objective(None)
        if isinstance(objective, WeightedSum):
            weighting = objective.weighing(dataset, Pool(pool), self.sensitivity)
            return weighting.grid, float(weighting.scale)
        return objective.grid(dataset, Pool(pool), self.sensitivity), 1.0

    def scores(
        self, counts: Confusion, dataset: Dataset, score_bits: int, executor: Executor
    ) -> Integers:
        """Private scores of sensitivity 2^score_bits, one per counted tree."""
        pool = len(counts.true_positives)
        grid = self.grid(dataset, pool, score_bits)
        objective = self._objective(counts)
        if isinstance(objective, ParallelObjective):
            objective = objective.on(executor)
        nothing = PrefixRecords(0)  # not read: the counts are complete
        measured = objective.measure(nothing, dataset, Pool(pool), self.sensitivity, grid)
        return scores(measured, grid, self.sensitivity, score_bits, objective.direction)

    def _objective(self, counts: Confusion | None) -> Objective:
        terms = [
            Term(CountedRate(rate, counts), self.weights[name] if self._weighted else None)
            for name, rate in RATES.items()
        ]
        return OBJECTIVES[self.objective](terms)

    @property
    def _weighted(self) -> bool:
        return self.objective == "weighted_sum"
