"""How good a learned metric is, measured on private rows: evaluation, never a release.

DILCA_M and DILCA_RR are built here from exact counts, by the rules that the baseline applies to
noisy ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Table
from mechanisms.distances.contexts import Drawing
from mechanisms.distances.learning import TargetMetric, metrics
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import Plan, plan
from mechanisms.distances.rules import Contexts, read_contexts
from mechanisms.distances.tables import PairTables, count_pairs
from mechanisms.kernels.executor import Inline
from mechanisms.sensitivity import Integers, Sensitivity

Floats = NDArray[np.float64]
SIZE = 3


@dataclass(frozen=True)
class Truth:
    """Exact counts of one table, and the contexts and metrics without noise."""

    table: Table

    @cached_property
    def public(self) -> Plan:
        return plan(self.table.dataset, Options(Context.BASELINE, rule=Rule.MEAN_SU), None)

    @cached_property
    def tables(self) -> PairTables:
        every = list(combinations(range(len(self.public.attributes)), 2))
        return count_pairs(self.table.records, self.public, every, Inline())

    def rule(self, rule: Rule, size: int = SIZE) -> Contexts:
        """DILCA_M is ``mean_su``, DILCA_RR is ``not_redundant``."""
        options = Options(Context.BASELINE, rule=rule, context_size=size)
        return read_contexts(plan(self.table.dataset, options, None), self.tables)

    @cached_property
    def relevance(self) -> dict[int, Integers]:
        """q of every other attribute, for each target."""
        return {t: self._drawing("max_relevance", 1).candidates(t)[1] for t in self.public.targets}

    def drawn(self, context: Context, size: int = SIZE) -> Contexts:
        """What the selection of ``context`` would choose without noise."""
        if context is Context.MEAN_SU:
            return self.rule(Rule.MEAN_SU)
        drawing = self._drawing(context.value, size)
        found = {}
        for target in self.public.targets:
            candidates, utilities = drawing.candidates(target)
            order = np.argsort(-utilities, kind="stable")
            chosen = order[: size if context is Context.MAX_RELEVANCE else 1]
            found[target] = tuple(x for index in chosen for x in candidates[index])
        return found

    def _drawing(self, context: str, size: int) -> Drawing:
        return drawing(self.table, Context(context), size, Sensitivity.GLOBAL)

    def metric(self, contexts: Contexts) -> list[TargetMetric]:
        return metrics(self.public, contexts, self.tables)


def drawing(table: Table, context: Context, size: int, sensitivity: Sensitivity) -> Drawing:
    """Draws contexts of every target, also where the baseline would stand in."""
    options = Options(context, context_size=size, sensitivity=sensitivity)
    whole = plan(table.dataset, options, None)
    bare = Plan(table.dataset, options, whole.attributes, whole.targets, size, 0, None)
    return Drawing(table.records, bare, Inline())


def adjusted_f(found: Sequence[int], true: Sequence[int], others: int) -> float:
    """(F − E F)/(1 − E F), E for a random context of the size found; 1 where E F = 1."""
    together = len(found) + len(true)
    score = 2 * len(set(found) & set(true)) / together
    chance = 2 * len(found) * len(true) / others / together
    return (score - chance) / (1 - chance) if chance < 1 else 1.0


def share_found(found: Sequence[int], true: Sequence[int]) -> float:
    """The share of the true context that was found."""
    return len(set(found) & set(true)) / len(true)


def correlation(one: Floats, other: Floats) -> float:
    """Pearson's, over pairs of values i < j; 0 where a side is constant."""
    upper = np.triu_indices(len(one), 1)
    a, b = one[upper] - one[upper].mean(), other[upper] - other[upper].mean()
    norm = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / norm) if norm > 1e-15 else 0.0


def points(table: Table, learned: Sequence[TargetMetric], rows: Integers) -> Floats:
    """Coordinates of records at the learned distances, (rows, axes)."""
    parts = [one.points[table.records.codes[one.attribute.name][rows]] for one in learned]
    return np.concatenate(parts, axis=1)


def one_hot_points(table: Table, rows: Integers) -> Floats:
    parts = [np.eye(len(a.levels))[table.records.codes[a.name][rows]] for a in table.attributes]
    return np.concatenate(parts, axis=1)


def adjusted_rand(found: NDArray[Any], true: NDArray[Any]) -> float:
    """Hubert and Arabie's index of two labellings."""
    _, a = np.unique(found, return_inverse=True)
    _, b = np.unique(true, return_inverse=True)
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1)

    def pairs(n: Any) -> Any:
        return n * (n - 1) / 2

    both = pairs(counts).sum()
    rows, columns = pairs(counts.sum(axis=1)).sum(), pairs(counts.sum(axis=0)).sum()
    chance = rows * columns / pairs(len(a))
    most = (rows + columns) / 2
    return float((both - chance) / (most - chance)) if most > chance else 1.0


def ward(coordinates: Floats, clusters: int) -> NDArray[np.int64]:
    """Labels of Ward's hierarchical clustering."""
    from scipy.cluster.hierarchy import fcluster, linkage

    labels: NDArray[np.int64] = fcluster(linkage(coordinates, "ward"), clusters, "maxclust")
    return labels


def neighbour_accuracy(coordinates: Floats, classes: NDArray[Any], k: int = 5) -> float:
    """k-nearest-neighbour accuracy by 4-fold cross-validation; folds go round the rows."""
    fold = np.arange(len(classes)) % 4
    right = 0
    squares = (coordinates**2).sum(axis=1)
    count = int(classes.max()) + 1
    for number in range(4):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        apart = (
            squares[test][:, None] + squares[train] - 2 * coordinates[test] @ coordinates[train].T
        )
        nearest = train[np.argpartition(apart, k - 1, axis=1)[:, :k]]
        votes = np.eye(count)[classes[nearest]].sum(axis=1)
        right += int((votes.argmax(axis=1) == classes[test]).sum())
    return right / len(classes)


def interval(values: Sequence[float] | Floats) -> tuple[float, float]:
    """Mean and half the width of its 99 % interval."""
    listed = np.asarray(values, dtype=float)
    half = 2.58 * listed.std(ddof=1) / len(listed) ** 0.5 if len(listed) > 1 else float("inf")
    return float(listed.mean()), float(half)
