"""Selects the attribute that splits each node of one depth; nodes hold disjoint records."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.executor import Executor
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.rate import Rate, score_bits
from mechanisms.selection import Selector
from mechanisms.selection.dampening import scores
from mechanisms.utilities.criterion import Criterion
from mechanisms.utilities.gini import Gini
from mechanisms.utilities.information_gain import InformationGain
from mechanisms.utilities.max import Max
from mechanisms.utilities.utility import Grid

BITS = score_bits(1)

CRITERIA: dict[str, Criterion] = {
    "information_gain": InformationGain(),
    "gini": Gini(),
    "max": Max(),
}


@dataclass(frozen=True)
class SplitRule:
    """How splits are chosen. Every node uses ``grid``, from the public bound on all rows."""

    criterion: Criterion
    sensitivity: Sensitivity
    selector: Selector
    grid: Grid

    @property
    def one_way(self) -> bool:
        """True if an added record moves the scores of all attributes the same way."""
        return self.criterion.one_way(NeighbouringRelation.ADD_REMOVE, self.sensitivity) != 0

    def prepared(self, dataset: Dataset) -> object:
        """Public tables that all choices of a tree read; the caller keeps them until the end."""
        return self.criterion.prepared(dataset, self.grid)

    def choose(self, nodes: Sequence[Sequence[Integers]], context: QueryContext) -> list[int]:
        """The place of the chosen attribute among those of each node.

        Args:
            nodes: private level × class counts, one table per remaining attribute of the node. All
                nodes have as many, because they are of one depth.
            context: its loss is that of every single choice; nodes contain disjoint records.

        Privacy: the loss of ``context`` under add/remove, by parallel composition.
        """
        values = self._scores(nodes, context.dataset, context.executor)
        if values.shape[1] == 1:
            # Only one attribute remains, so nothing is drawn. The share of the loss for this choice
            # is spent nevertheless, because the public price includes it for every split.
            return [0] * len(nodes)
        rate = Rate.of(context.loss.epsilon_nano, BITS, one_way=self.one_way)
        return list(map(int, self.selector.sample_rows(values, rate, context.randomness)))

    def _scores(
        self, nodes: Sequence[Sequence[Integers]], dataset: Dataset, executor: Executor
    ) -> Integers:
        """The scores of the attributes of each node, shape (nodes, attributes)."""

        def score(tables: Sequence[Integers]) -> Integers:
            measured = self.criterion.of_tables(list(tables), dataset, self.sensitivity, self.grid)
            return scores(measured, self.grid, self.sensitivity, BITS, self.criterion.direction)

        if self.sensitivity is Sensitivity.FLATTENED:
            # In the sensitivity mode ``flattened``, the score of an attribute depends on the
            # largest sensitivity of all attributes of its node. So each node is scored by itself.
            return np.array(executor.map(score, nodes))
        every = [table for tables in nodes for table in tables]
        # With n workers, each scores every n-th table, so that all take about the same time. No
        # worker gets an empty list.
        parts = [every[i :: executor.workers] for i in range(min(executor.workers, len(every)))]
        results = np.empty(len(every), dtype=np.int64)
        for i, part in enumerate(executor.map(score, parts)):
            results[i :: executor.workers] = part
        return results.reshape(len(nodes), -1)
