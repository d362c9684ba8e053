"""Grows a private decision tree level by level, from noisy counts and selected splits."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.level_counts import counts_by_levels, stored_counts
from mechanisms.kernels.partition import Nodes, descend, joined, node_tables
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.level_tables import rows_read, stored_table
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import NOTHING, Work, times, together, work
from mechanisms.noise.count_noise import noisy, variance
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK
from mechanisms.selection import Selector
from mechanisms.selection.dampening import check_exact
from mechanisms.trees.id3.budget import Budget, most_nodes
from mechanisms.trees.id3.gaussian_budget import GaussianBudget
from mechanisms.trees.id3.node import Node, as_json, noise_of, prune
from mechanisms.trees.id3.split_rule import BITS, CRITERIA, SplitRule
from mechanisms.trees.id3.stop_rule import (
    MAX_COUNTERS,
    PER_SPLIT,
    most_splits,
    node_limit,
    to_split,
)
from mechanisms.trees.task import Task
from mechanisms.utilities.tables import row_bound

#: Estimated run times of a node of the tree, in the time that one counter takes. ``NODE`` is its
#: fixed time, and ``COUNT`` the time of each noisy count. The choice of a split takes ``NODE``
#: again, and ``ATTRIBUTE`` for each attribute.
NODE, COUNT, ATTRIBUTE = 4000, 100, 300


@dataclass(frozen=True)
class Id3:
    """The parameters of the algorithm; ``max_depth`` 0 is a single leaf."""

    task: Task
    max_depth: int
    criterion: str
    sensitivity: Sensitivity
    selector: Selector
    prune: bool
    #: A leaf above the greatest depth spends the loss that its path has left, so every path costs
    #: as much as the longest one. If this is True, such a leaf keeps to what is left of ρ as well
    #: as of ε.
    in_rho: bool = False

    @property
    def splits(self) -> int:
        """The most splits on a path from the root to a leaf."""
        return min(self.max_depth, len(self.task.attributes))

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        """The public work of growing a tree; all nodes of a depth hold every row once."""
        rows, task = row_bound(dataset), self.task
        criterion, levels = CRITERIA[self.criterion], sum(task.levels)
        scored = criterion.table_work(rows, levels, len(task.labels), self.sensitivity)
        names = {one.name: (one.name, task.classes.name) for one in task.attributes}
        missing = [name for name in names if stored_table(dataset, names[name]) is None]
        stored = sum(rows_read(dataset, names[one], rows) for one in names if one not in missing)
        most = [most_nodes(task.levels, depth) for depth in range(self.splits + 1)]
        spread = variance(self.budget(loss).leaf_law(self.splits))
        by_rows = most_splits(task.levels, len(task.labels), spread, rows)
        splits = list(map(min, most[: self.splits], by_rows))
        # The more nodes a depth has, the fewer attributes are counted in one pass over the rows. So
        # the largest number of nodes at each depth gives the most work.
        sizes = {one.name: len(one.levels) for one in task.attributes}
        root = len(joined([sizes[name] for name in missing], len(task.labels)))
        below = sum(len(joined(task.levels, nodes * len(task.labels))) for nodes in splits[1:])
        counted = work("rows of nodes", stored + rows * (root + below)) if self.splits else NOTHING
        # The public limit on the number of nodes applies to the whole tree and not to each depth,
        # so it bounds the work of all depths together.
        limit = node_limit(task.levels, len(task.labels), spread, rows)
        nodes = min(sum(most), limit, 1 + sum(splits) * max(task.levels))
        choices = min(sum(splits), (limit - 1) // (min(task.levels) + PER_SPLIT))
        cells = min(nodes * task.cells, (self.splits + 1) * MAX_COUNTERS)
        node = NODE + COUNT * (1 + len(task.labels)) * (GAUSSIAN_WORK if loss.unpriced else 1)
        choice = NODE + ATTRIBUTE * len(task.attributes)
        # Each split counts as ``PER_SPLIT`` further nodes towards the limit on the nodes of a tree,
        # so a tree of many splits has fewer nodes. ``within`` bounds the work under this limit.
        within = limit * node + choices * max(0, choice - PER_SPLIT * node)
        units = min(nodes * node + choices * choice, within) + cells
        each = work("nodes", units, 1 + self.splits)
        return together(counted, times(scored, self.splits), each)

    def budget(self, loss: PrivacyLoss, splits: int | None = None) -> Budget | GaussianBudget:
        """The shares of a tree of so many splits on a path, by default ``self.splits``."""
        if splits is None:
            splits = self.splits
        if loss.unpriced:
            return GaussianBudget(loss, splits, self.selector)
        return Budget(loss, splits, self.selector if self.in_rho else None)

    def splitting(self, dataset: Dataset) -> SplitRule:
        """The split rule. Raises: UnsupportedQuery from public facts when the dataset does not
        fit, or when no grid fits 64 bits."""
        if dataset.neighbouring is not NeighbouringRelation.ADD_REMOVE:
            raise UnsupportedQuery(
                "trees are private when records come or go",
                supported={"neighbouring": [NeighbouringRelation.ADD_REMOVE.value]},
            )
        criterion = CRITERIA[self.criterion]
        grid = criterion.table_grid(row_bound(dataset))
        check_exact(grid, BITS)
        return SplitRule(criterion, self.sensitivity, self.selector, grid)


def grow(context: QueryContext, request: Id3) -> dict[str, Any]:
    """A decision tree as nested JSON; leaves carry noisy class counts.

    Every path spends the whole loss of the context, in the shares that ``id3.budget`` lists.

    Raises: UnsupportedQuery as ``Id3.budget`` and ``Id3.splitting``, before anything private is
        read.
    Privacy: the loss of the context under add/remove: along a path by sequential composition,
        across siblings and the classes of a leaf by parallel composition. Stopping, pruning and
        labels are functions of released counts.
    Source: Local Dampening, PVLDB 14(4), 2021, section 5.2 and Algorithm 2, with the stop rule
        √2/ε for the ε of a leaf at the full depth. Noisy counts are discrete Laplace, or discrete
        Gaussian for a loss in ρ alone.
    """
    budget, splitting = request.budget(context.loss), request.splitting(context.dataset)
    growth = _TreeGrowth(context, request, budget, splitting)
    # This reference keeps the public tables in the cache until all splits are chosen. Otherwise
    # every split could build them anew.
    tables = splitting.prepared(context.dataset)
    root = growth.tree()
    del tables
    if request.prune:
        prune(root)
    return as_json(root, request.task)


@dataclass
class _TreeGrowth:
    context: QueryContext
    request: Id3
    budget: Budget | GaussianBudget
    splitting: SplitRule
    #: How much of the limit on nodes the tree uses so far: its nodes, and ``PER_SPLIT`` for each of
    #: its splits.
    nodes: int = 1
    #: For each row, the number of its node among the nodes that are split at this depth, or −1 if
    #: its node is not split. At the root it is None, because all rows are in one node.
    where: Nodes | None = None

    def __post_init__(self) -> None:
        task, codes = self.request.task, self.context.table.codes
        self.columns = [(codes[a.name], len(a.levels)) for a in task.attributes]
        self.classes = codes[task.classes.name], len(task.labels)

    def tree(self) -> Node:
        names = [(self.request.task.classes.name,)]
        (counts,) = counts_by_levels(self.context.table, names, self._sizes, self.context.executor)
        root = Node(tuple(range(len(self.columns))))
        level, counts = [root], counts[None]
        parents = list[Node]()
        for depth in range(self.budget.splits):
            chosen = self._to_split(level, counts)
            leaves = sorted({*range(len(level))} - {*chosen})
            self._label([level[i] for i in leaves], counts[leaves], depth)
            if not chosen:
                return root
            if parents:
                self._descend(parents, chosen)
            parents = [level[i] for i in chosen]
            level, counts = self._split(parents)
        self._label(level, counts, self.budget.splits)
        return root

    def _to_split(self, level: Sequence[Node], counts: Integers) -> list[int]:
        """The numbers of the nodes to split, by their noisy counts."""
        totals = counts.sum(axis=1)
        law, task = self.budget.count_law, self.request.task
        remaining = [node.remaining for node in level]
        widest = {one: max(task.levels[a] for a in one) for one in set(remaining)}
        spread = variance(self.budget.leaf_law(self.budget.splits))
        rows = row_bound(self.context.dataset)
        return to_split(
            noisy(totals, law, self.context).tolist(),
            [widest[one] for one in remaining],
            self.classes[1],
            task.cells,
            spread,
            node_limit(task.levels, self.classes[1], spread, rows) - self.nodes,
            rows,
        )

    def _descend(self, parents: Sequence[Node], chosen: Sequence[int]) -> None:
        """Assign the rows of ``parents`` to the children, as far as these are split too."""
        children = [len(node.children) for node in parents]
        numbers = np.full(sum(children), -1, dtype=np.int32)
        numbers[list(chosen)] = np.arange(len(chosen), dtype=np.int32)
        where = self.where
        if where is None:
            where = np.zeros(len(self.classes[0]), dtype=np.int32)
        self.where = descend(
            self.columns,
            where,
            np.array([node.attribute for node in parents], dtype=np.int32),
            np.cumsum([0, *children[:-1]], dtype=np.int32),
            numbers,
            self.context.executor,
        )

    def _split(self, nodes: Sequence[Node]) -> tuple[list[Node], Integers]:
        """Choose an attribute for each of the nodes.

        Returns: their children, in order, and the private class counts of these.
        """
        attributes = sorted({a for node in nodes for a in node.remaining})
        tables = dict(zip(attributes, self._tables(nodes, attributes), strict=True))
        chosen = self.splitting.choose(
            [[tables[a][i] for a in node.remaining] for i, node in enumerate(nodes)],
            self.context.at(self.budget.split_loss),
        )
        counts = []
        for i, (node, place) in enumerate(zip(nodes, chosen, strict=True)):
            table = tables[node.remaining[place]][i]
            node.split(node.remaining[place], len(table))
            counts.append(table)
        children = [child for node in nodes for child in node.children]
        self.nodes += len(children) + PER_SPLIT * len(nodes)
        return children, np.concatenate(counts)

    def _tables(self, nodes: Sequence[Node], attributes: Sequence[int]) -> list[Integers]:
        """The level × class counts of each attribute in each node: private."""
        context, task = self.context, self.request.task
        tables: dict[int, Integers] = {}
        where = self.where
        if where is None:
            named = {a: (task.attributes[a].name, task.classes.name) for a in attributes}
            stored = {a: stored_counts(context.table, named[a]) for a in attributes}
            tables = {a: table[None] for a, table in stored.items() if table is not None}
            where = np.zeros(len(self.classes[0]), np.int32)
        missing = [a for a in attributes if a not in tables]
        columns = [self.columns[a] for a in missing]
        counted = node_tables(columns, self.classes, where, len(nodes), context.executor)
        tables.update(zip(missing, counted, strict=True))
        return [tables[a] for a in attributes]

    @property
    def _sizes(self) -> dict[str, int]:
        """The public number of levels of each attribute."""
        task = self.request.task
        return {one.name: len(one.levels) for one in (*task.attributes, task.classes)}

    def _label(self, leaves: Sequence[Node], counts: Integers, depth: int) -> None:
        """Release the class counts of leaves at one depth: private, shape (leaves, classes)."""
        if not leaves:
            return
        law = self.budget.leaf_law(depth)
        noised, noise = noisy(counts, law, self.context).tolist(), noise_of(law)
        for leaf, released in zip(leaves, noised, strict=True):
            leaf.release(released, noise)
