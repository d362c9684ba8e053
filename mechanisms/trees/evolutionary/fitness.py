"""The fitness of trees: an objective of their true positive and true negative rates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.forests import Confusion
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.records import PrefixRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import Work
from mechanisms.noise.rate import score_bits
from mechanisms.objectives import OBJECTIVES, Objective, Pareto, Term, WeightedSum
from mechanisms.selection import Selector
from mechanisms.selection.dampening import check_exact, scores
from mechanisms.trees.evolutionary.ranking import Ranking
from mechanisms.utilities.tree_rates import CountedTrees, Rate, TrueNegativeRate, TruePositiveRate
from mechanisms.utilities.utility import Grid

RATES: dict[str, Rate] = {rate.name: rate for rate in (TruePositiveRate(), TrueNegativeRate())}

#: The sensitivity modes, that is, the ways to compute scores, in which the search can rank trees.
SENSITIVITIES = (Sensitivity.GLOBAL, Sensitivity.LOCAL)


@dataclass(frozen=True)
class Fitness(Ranking):
    """How trees are scored: ``pareto`` by how few are better in both rates, or by a weighted sum.

    Under the ``local`` sensitivity, the sensitivity function δ is that of the two rates. Under
    add/remove it is that of the larger term only, because a record has one class.
    """

    objective: Literal["pareto", "weighted_sum"]
    weights: Mapping[str, Decimal]
    sensitivity: Sensitivity

    def steps(self, selector: Selector, loss: PrivacyLoss, draws: int) -> tuple[Step, ...]:
        return selector.steps(loss, draws, "peeled")

    def check(self, dataset: Dataset, pool: int, draws: int) -> None:
        self.grid(dataset, pool, score_bits(draws))

    def drawn(
        self, counts: Confusion, draws: int, selector: Selector, context: QueryContext
    ) -> list[int]:
        """As ``Ranking.drawn``; the scores are those of all draws."""
        bits, means = score_bits(draws), (context.randomness, context.executor)
        scores = self.scores(counts, context.dataset, bits, context.executor)
        drawn = selector.top(scores, bits, context.loss, draws, "peeled", *means)
        return [int(place) for place in drawn]

    def grid(self, dataset: Dataset, pool: int, score_bits: int) -> Grid:
        """The public grid for a pool of this size. Raises: UnsupportedQuery when none fits 64
        bits."""
        if self.sensitivity not in SENSITIVITIES:
            raise UnsupportedQuery(
                "trees are selected by global or local sensitivity",
                supported={"sensitivity": [str(name) for name in SENSITIVITIES]},
            )
        grid = self._objective().grid(dataset, CountedTrees(pool), self.sensitivity)
        check_exact(grid, score_bits)
        return grid

    def work(self, dataset: Dataset, pool: int, draws: int) -> Work:
        """As ``Ranking.work``: scores are worked out once for all draws."""
        del draws
        return self._objective().work(dataset, CountedTrees(pool), self.sensitivity)

    def unit(self, dataset: Dataset, pool: int) -> tuple[Grid, float]:
        """The public grid, and the number of its units that make one unit of the objective."""
        objective = self._objective()
        if isinstance(objective, WeightedSum):
            weighting = objective.weighing(dataset, CountedTrees(pool), self.sensitivity)
            return weighting.grid, float(weighting.scale)
        return objective.grid(dataset, CountedTrees(pool), self.sensitivity), 1.0

    def scores(
        self, counts: Confusion, dataset: Dataset, score_bits: int, executor: Executor
    ) -> Integers:
        """Private scores of sensitivity 2^score_bits, one per counted tree."""
        pool = len(counts.true_positives)
        grid = self.grid(dataset, pool, score_bits)
        objective = self._objective()
        if isinstance(objective, Pareto):
            objective = objective.on(executor)
        # ``measure`` takes records, but does not read them here, because the correct predictions of
        # each tree are already counted.
        nothing = PrefixRecords(0)
        trees = CountedTrees(pool, counts)
        measured = objective.measure(nothing, dataset, trees, self.sensitivity, grid)
        return scores(measured, grid, self.sensitivity, score_bits, objective.direction)

    def _objective(self) -> Objective:
        weighted = self.objective == "weighted_sum"
        terms = [
            Term(rate, self.weights[name] if weighted else None) for name, rate in RATES.items()
        ]
        return OBJECTIVES[self.objective](terms)
