"""How good a learned metric is, measured on private rows: evaluation, never a release.

DILCA_M and DILCA_RR are built here from exact counts, by the rules that the baseline applies to
noisy ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.data.tables import Table
from benchmarks.simulation import randomness as of_this_process
from mechanisms.distances.contexts import ContextSampler, mean_su, target_entropies
from mechanisms.distances.learn import TargetMetric, metrics, needed_pairs
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import Pair, Plan, plan
from mechanisms.distances.rules import Contexts, read_contexts
from mechanisms.distances.tables import PairTables, count_pairs, release_pairs
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.randomness import Randomness
from mechanisms.model.sensitivity import Integers, Sensitivity

Floats = NDArray[np.float64]
SIZE = 3
EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.75, 2.5)


class Truth:
    """Exact counts of one table, and the contexts and metrics without noise."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._sampler = cache(partial(drawing, table))
        self._scored = cache(lambda options, target: self._sampler(options).scored(target))

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

    def drawn(self, context: Context, size: int = SIZE) -> Contexts:
        """What the selection of ``context`` would choose without noise."""
        if context is Context.MEAN_SU:
            return self.rule(Rule.MEAN_SU)
        options = Options(context, context_size=size, sensitivity=Sensitivity.GLOBAL)
        contexts = {}
        for target in self.public.targets:
            candidates, utilities = self._sampler(options).candidates(target)
            order = np.argsort(-utilities, kind="stable")
            chosen = order[: size if context is Context.MAX_RELEVANCE else 1]
            contexts[target] = tuple(x for index in chosen for x in candidates[index])
        return contexts

    def contexts(self, options: Options) -> Contexts:
        """What these options would choose without noise."""
        if options.context is Context.BASELINE:
            return self.rule(options.rule)
        return self.drawn(options.context, options.context_size or SIZE)

    def learner(self, options: Options, target: str | None = None) -> Repeated:
        """Learns the metric of one target, or of all of them, by these options."""
        return Repeated(self, plan(self.table.dataset, options, target))

    def draw(
        self, plan: Plan, target: int, loss: PrivacyLoss, randomness: Randomness
    ) -> tuple[int, ...]:
        """One private context of a target; its scores are computed once."""
        scored = self._scored(plan.options, target)
        return self._sampler(plan.options).choose(scored, loss, randomness)

    def metric(self, contexts: Contexts) -> list[TargetMetric]:
        return metrics(self.public, contexts, self.tables)


class Repeated:
    """Learns one plan as the service does, again and again: what is private is worked out once.

    Draws, noise, budgets and what is read off them are the service's own; only counts, scores and
    entropies are reused between repetitions. A test holds that one seed gives what ``learn`` gives.
    """

    def __init__(self, truth: Truth, plan: Plan) -> None:
        self._truth, self._plan = truth, plan
        self._entropies: Integers | None = None
        if plan.baseline is None and plan.options.context is Context.MEAN_SU:
            self._entropies = target_entropies(truth.table.records, plan, Inline())

    def answers(self, loss: PrivacyLoss | float, count: int) -> Iterator[list[TargetMetric]]:
        """As many answers for a loss, or at ε, drawn from the randomness of this process."""
        if not isinstance(loss, PrivacyLoss):
            loss = PrivacyLoss.parse(repr(loss))
        for _ in range(count):
            yield self.learn(loss, of_this_process())

    def learn(self, loss: PrivacyLoss, randomness: Randomness) -> list[TargetMetric]:
        """One answer for ``loss``."""
        plan = self._plan
        for_contexts, for_tables = plan.shares(loss)
        if plan.baseline is not None:
            noisy = self._released(plan.baseline, for_tables, randomness)
            return metrics(plan, read_contexts(plan, noisy), noisy)
        contexts = self._contexts(for_contexts, randomness)
        noisy = self._released(needed_pairs(contexts), for_tables, randomness)
        return metrics(plan, contexts, noisy)

    def _contexts(self, loss: PrivacyLoss, randomness: Randomness) -> Contexts:
        plan = self._plan
        if self._entropies is not None:
            return mean_su(self._entropies, plan, plan.context_loss(loss), randomness, Inline())
        shares = zip(plan.targets, loss.split(len(plan.targets)), strict=True)
        return {target: self._truth.draw(plan, target, plan.context_loss(share), randomness)
                for target, share in shares}  # fmt: skip

    def _released(
        self, pairs: tuple[Pair, ...] | list[Pair], loss: PrivacyLoss, randomness: Randomness
    ) -> PairTables:
        counted = PairTables({pair: self._truth.tables.tables[pair] for pair in pairs})
        return release_pairs(counted, self._plan, loss, randomness, Inline())


def drawing(table: Table, options: Options, executor: Executor | None = None) -> ContextSampler:
    """Draws contexts of every target, also where the baseline would stand in."""
    whole = plan(table.dataset, options, None)
    bare = Plan(table.dataset, options, whole.attributes, whole.targets, whole.size, 0, None)
    return ContextSampler(table.records, bare, executor or Inline())


def adjusted_f(context: Sequence[int], true: Sequence[int], others: int) -> float:
    """(F − E F)/(1 − E F), E for a random context of that size; 1 where E F = 1."""
    together = len(context) + len(true)
    score = 2 * len(set(context) & set(true)) / together
    chance = 2 * len(context) * len(true) / others / together
    return (score - chance) / (1 - chance) if chance < 1 else 1.0


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


def crossed(labels: Integers, true: Integers) -> Integers:
    """How many rows have each pair of labels, (labels, labels)."""
    width = int(true.max()) + 1
    cells = (int(labels.max()) + 1) * width
    return np.bincount(labels * width + true, minlength=cells).reshape(-1, width)


def adjusted_rand(counts: Integers) -> float:
    """Hubert and Arabie's index of two labellings, from the counts of pairs of labels."""

    def pairs(n: Any) -> Any:
        return n * (n - 1) / 2

    both = pairs(counts).sum()
    rows, columns = pairs(counts.sum(axis=1)).sum(), pairs(counts.sum(axis=0)).sum()
    chance = rows * columns / pairs(counts.sum())
    most = (rows + columns) / 2
    return float((both - chance) / (most - chance)) if most > chance else 1.0


def mutual_information(counts: Integers) -> float:
    """Mutual information of two labellings over the mean of their entropies, from the counts of
    pairs of labels; 1 where both have a single label."""
    shares = counts / counts.sum()
    entropies = [_entropy(shares.sum(axis=axis)) for axis in (0, 1)]
    both = sum(entropies)
    return 2 * (both - _entropy(shares.ravel())) / both if both > 0 else 1.0


def _entropy(shares: Floats) -> float:
    positive = shares[shares > 0]
    return -float(positive @ np.log(positive))


def squares(coordinates: Floats) -> Floats:
    """Squared distances of all rows."""
    lengths = (coordinates**2).sum(axis=1)
    apart: Floats = lengths[:, None] + lengths - 2 * coordinates @ coordinates.T
    return np.maximum(apart, 0, out=apart)


def ward(apart: Floats, clusters: int) -> Integers:
    """Labels of Ward's hierarchical clustering, from squared distances."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    upper = squareform(np.sqrt(apart), checks=False)
    labels: Integers = fcluster(linkage(upper, "ward"), clusters, "maxclust").astype(np.int64)
    return labels


def neighbour_accuracy(apart: Floats, classes: Integers, k: int = 5) -> float:
    """k-nearest-neighbour accuracy by 4-fold cross-validation, from squared distances; folds go
    round the rows."""
    fold = np.arange(len(classes)) % 4
    apart = np.where(fold[:, None] == fold, np.inf, apart)
    nearest = np.argpartition(apart, k - 1, axis=1)[:, :k]
    votes = np.eye(int(classes.max()) + 1)[classes[nearest]].sum(axis=1)
    return float((votes.argmax(axis=1) == classes).mean())
