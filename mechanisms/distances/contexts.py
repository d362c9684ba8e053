"""Drawn contexts: private selection of attributes, or of a set of them, for each target.

The utility is q = −N·H(Y | X) for N records, a target Y, and a context X of one attribute or a set
of them. For a fixed target it ranks as mutual information does and is less sensitive. One change
moves it by at most φ(N), which is attained; the paper prints more than twice that
(docs/privacy.md).

``mean_su`` takes the attributes that explain one target best, by noisy entropies. Every entropy is
noisy, including those in denominators; later steps read noisy values alone. One change can move all
2m − 1 entropies of m attributes, each by its whole sensitivity.
"""

from collections.abc import Sequence
from itertools import combinations
from math import prod

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.distances.context_scores import (
    ContextSensitivity,
    dampened,
    largest_change,
    unit_steps,
)
from mechanisms.distances.entropies import entropy_steps
from mechanisms.distances.options import Context
from mechanisms.distances.plan import Plan
from mechanisms.distances.rules import Contexts
from mechanisms.distances.subset_counts import count_subsets
from mechanisms.distances.tables import PairTables, columns, count_pairs
from mechanisms.distances.uncertainty import at_least_mean, projected, symmetric_uncertainty
from mechanisms.kernels.long_division import scaled_floor
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.model.context import QueryContext
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.rate import score_bits
from mechanisms.utilities.entropy_table import entropy_sums
from mechanisms.utilities.information_gain import InformationGain
from mechanisms.utilities.utility import Grid

#: Candidates for the context of a target, and the private utility or score of each. A context is
#: the set of attributes, listed by number, that distinguish the values of the target.
Listed = tuple[list[tuple[int, ...]], Integers]


def draw_contexts(context: QueryContext, plan: Plan) -> Contexts:
    """The context of every target.

    Privacy: ``context.loss`` under the dataset's relation, shared equally among the targets.
    """
    if plan.options.context is Context.MEAN_SU:
        exact = target_entropies(context.table, plan, context.executor)
        loss = plan.context_loss(context.loss)
        return mean_su(exact, plan, loss, context.randomness, context.executor)
    drawing = ContextSampler(context.table, plan, context.executor)
    shares = context.loss.split(len(plan.targets))
    losses = {share: plan.context_loss(share) for share in {*shares}}
    return {
        target: drawing.draw(target, losses[share], context.randomness)
        for target, share in zip(plan.targets, shares, strict=True)
    }


def target_entropies(records: TableRecords, plan: Plan, executor: Executor) -> Integers:
    """The private entropies of the target, of the m − 1 others and of their pairs, (2m − 1,).

    They are in steps of ``plan.entropy_grid()``.
    """
    (target,) = plan.targets
    others = plan.others(target)
    pairs = [(min(x, target), max(x, target)) for x in others]
    private = count_pairs(records, plan, pairs, executor)
    tables = [private.of(x, target) for x in others]
    listed = [tables[0].sum(axis=0), *(table.sum(axis=1) for table in tables), *tables]
    return entropy_steps(listed, plan.rows, plan.entropy_grid())


def mean_su(
    exact: Integers, plan: Plan, loss: PrivacyLoss, randomness: Randomness, executor: Executor
) -> Contexts:
    """Attributes whose noisy symmetric uncertainty with the one target reaches the mean.

    Args:
        exact: the private result of ``target_entropies``.

    Privacy: ``loss`` under the dataset's relation.
    """
    (target,) = plan.targets
    others, levels = plan.others(target), plan.levels
    noisy = discrete_laplace(exact, plan.entropy_rate(loss), randomness, executor)
    h = np.ldexp(noisy.astype(np.float64), -plan.entropy_grid().bits).tolist()
    scores = {}
    for i, x in enumerate(others):
        three = projected(h[1 + i], h[0], h[1 + len(others) + i], levels[x], levels[target])
        scores[x] = symmetric_uncertainty(*three)
    return {target: at_least_mean(scores, plan.options.threshold)}


def most_pairs(plan: Plan, target: int, candidates: Sequence[Sequence[int]]) -> int:
    """A public bound on the pairs (m, β) that decide δ of contexts of ``target``.

    Each has a β of its own, at most N divided by the number of classes, and a level of its own.
    """
    levels = sum(prod(plan.levels[x] for x in context) for context in candidates)
    return min(levels, plan.rows // plan.levels[target] + 1)


class ContextSampler:
    """Draws contexts of several targets from the same private counts."""

    def __init__(self, records: TableRecords, plan: Plan, executor: Executor) -> None:
        self._plan, self._executor = plan, executor
        self.grid: Grid = InformationGain().table_grid(plan.rows)
        self._sums = entropy_sums(plan.rows, self.grid.bits)
        self._columns = columns(records, plan)
        self._rows = len(self._columns[0][0])
        self._last: tuple[int, Listed] | None = None
        if plan.options.context is Context.MAX_RELEVANCE:
            self._pairs: PairTables = count_pairs(records, plan, plan.pairs, executor)
        else:
            self._subset_counts = count_subsets(plan, self._columns, executor)
            self._entropies = self._subset_counts.sums(self._sums)

    def draw(self, target: int, loss: PrivacyLoss, randomness: Randomness) -> tuple[int, ...]:
        """The context of one target."""
        return self.choose(self.scored(target), loss, randomness)

    def scored(self, target: int) -> Listed:
        """The candidates for the context of one target, or one draw of it, with private scores."""
        candidates, _ = self.candidates(target)
        return candidates, self.scores(target, score_bits(self._plan.draws))

    def choose(self, scored: Listed, loss: PrivacyLoss, randomness: Randomness) -> tuple[int, ...]:
        """One context, drawn by its scores. Privacy: ``loss`` under the dataset's relation."""
        candidates, scores = scored
        options, draws = self._plan.options, self._plan.draws
        if options.sensitivity is Sensitivity.GLOBAL and not self._plan.replace:
            # Under add/remove with global sensitivity, one record moves all scores in one
            # direction. Then P ∝ exp(ε·score) is ε-DP. The selector draws by exp(ε·score / 2), so
            # it is called with 2ε.
            loss = loss * 2
        chosen = options.selector.top(
            scores, score_bits(draws), loss, draws, "one_shot", randomness, self._executor
        )
        return tuple(x for index in chosen for x in candidates[index])

    def candidates(self, target: int) -> Listed:
        """The candidates for the context of one target, or for one draw of it, and utilities q."""
        if self._last is None or self._last[0] != target:
            relevance = self._plan.options.context is Context.MAX_RELEVANCE
            listed = self._single(target) if relevance else self._subsets(target)
            self._last = target, listed
        return self._last[1]

    def scores(self, target: int, bits: int) -> Integers:
        """The private scores of all candidates of one target, of sensitivity at most 2^bits."""
        if self._plan.options.sensitivity is Sensitivity.GLOBAL:
            _, utilities = self.candidates(target)
            return scaled_floor(utilities, largest_change(self._plan.rows, self.grid), bits)
        return dampened(*self.measured(target), bits)

    def measured(self, target: int) -> tuple[Integers, ContextSensitivity]:
        """The private utilities of all candidates of one target and their δ, in grid steps."""
        plan, (candidates, utilities) = self._plan, self.candidates(target)
        unit = unit_steps(plan.levels[target], self.grid)
        delta = ContextSensitivity(
            levels=self._purest(target, candidates),
            sums=self._sums,
            unit=unit,
            replace=plan.replace,
            cap=largest_change(plan.rows, self.grid),
            rows=plan.rows,
            most_pairs=most_pairs(plan, target, candidates),
        )
        return utilities + self._rows * unit, delta

    def _single(self, target: int) -> Listed:
        """Each other attribute and its private utility q."""
        others = self._plan.others(target)
        tables = [self._pairs.of(x, target) for x in others]
        utilities = [self._q(table) for table in tables]
        return [(x,) for x in others], np.array(utilities, np.int64)

    def _q(self, table: Integers) -> int:
        return int(self._sums[table].sum() - self._sums[table.sum(axis=1)].sum())

    def _subsets(self, target: int) -> Listed:
        """Each set of k other attributes and its private q, the difference of two entropies."""
        h = self._entropies
        candidates = list(combinations(self._plan.others(target), self._plan.size))
        utilities = [h[tuple(sorted((*s, target)))] - h[s] for s in candidates]
        return candidates, np.array(utilities, np.int64)

    def _purest(self, target: int, candidates: list[tuple[int, ...]]) -> RarestPairs:
        if self._plan.options.context is Context.MAX_RELEVANCE:
            return RarestPairs.of([self._pairs.of(x, target) for (x,) in candidates]).merged()
        return self._subset_counts.purest(target, candidates)
