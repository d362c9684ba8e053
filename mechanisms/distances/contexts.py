"""Contexts that are drawn: private selection of attributes, or of a set of them, for each target.

The utility is q = −N·H(Y | X), X one attribute or a set taken as one. For a fixed target it ranks
as mutual information does and is less sensitive: N times it moves by φ(N) at most, which is
attained, where the paper prints more than twice that (docs/privacy.md).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.distances.dampening import (
    ContextSensitivity,
    dampened,
    largest_change,
    merged_levels,
    merged_purest,
    unit_steps,
)
from mechanisms.distances.entropy_contexts import mean_su, target_entropies
from mechanisms.distances.options import Context
from mechanisms.distances.plan import Plan
from mechanisms.distances.rules import Contexts
from mechanisms.distances.tables import PairTables, columns, count_pairs
from mechanisms.kernels.long_division import scaled_floor
from mechanisms.kernels.stacking import stacked
from mechanisms.kernels.subsets import purest_levels, subset_sums
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.rate import score_bits
from mechanisms.utilities.entropy_table import entropy_sums
from mechanisms.utilities.information_gain import InformationGain
from mechanisms.utilities.rarest_class import RarestPairs
from mechanisms.utilities.utility import Grid


def draw_contexts(
    records: TableRecords,
    plan: Plan,
    loss: PrivacyLoss,
    randomness: Randomness,
    executor: Executor,
) -> Contexts:
    """The context of every target, for ``loss`` in all.

    Privacy: ``loss`` under the dataset's relation, shared equally among the targets.
    """
    if plan.options.context is Context.MEAN_SU:
        exact = target_entropies(records, plan, executor)
        return mean_su(exact, plan, loss, randomness, executor)
    drawing = Drawing(records, plan, executor)
    shares = loss.split(len(plan.targets))
    return {
        target: drawing.draw(target, share, randomness)
        for target, share in zip(plan.targets, shares, strict=True)
    }


class Drawing:
    """Draws contexts of several targets from the same private counts."""

    def __init__(self, records: TableRecords, plan: Plan, executor: Executor) -> None:
        self._plan, self._executor = plan, executor
        self.grid: Grid = InformationGain().table_grid(plan.rows)
        self._sums = entropy_sums(plan.rows, self.grid.bits)
        self._columns = columns(records, plan)
        self._rows = len(self._columns[0][0])
        self._candidates: Callable[[int], tuple[list[tuple[int, ...]], Integers]]
        if plan.options.context is Context.MAX_RELEVANCE:
            several = len(plan.targets) > 1
            pairs = [
                pair
                for pair in combinations(range(len(plan.attributes)), 2)
                if several or plan.targets[0] in pair
            ]
            self._pairs: PairTables = count_pairs(records, plan, pairs, executor)
            self._candidates = self._single
        else:
            self._codes = stacked(self._columns)
            self._levels = np.array(plan.levels, np.int64)
            self._entropies = self._all_subsets()
            self._candidates = self._subsets

    def draw(self, target: int, loss: PrivacyLoss, randomness: Randomness) -> tuple[int, ...]:
        """The context of one target."""
        return self.choose(self.scored(target), loss, randomness)

    def scored(self, target: int) -> tuple[list[tuple[int, ...]], Integers]:
        """What may become the context of one target, or part of it; and, private, the scores."""
        candidates, _ = listed = self._candidates(target)
        return candidates, self._scores(target, listed, score_bits(self._draws))

    def choose(
        self,
        scored: tuple[list[tuple[int, ...]], Integers],
        loss: PrivacyLoss,
        randomness: Randomness,
    ) -> tuple[int, ...]:
        """One context, drawn by its scores."""
        candidates, scores = scored
        options, draws = self._plan.options, self._draws
        if options.sensitivity is Sensitivity.GLOBAL and not self._plan.replace:
            # Every score moves one way: P ∝ exp(ε·score) instead of exp(ε·score / 2).
            loss = loss * 2
        chosen = options.selector.top(
            scores, score_bits(draws), loss, draws, "one_shot", randomness, self._executor
        )
        return tuple(x for index in chosen for x in candidates[index])

    @property
    def _draws(self) -> int:
        plan = self._plan
        return plan.size if plan.options.context is Context.MAX_RELEVANCE else 1

    def candidates(self, target: int) -> tuple[list[tuple[int, ...]], Integers]:
        """What may become the context of one target, or part of it; and, private, each one's q."""
        return self._candidates(target)

    def scores(self, target: int, bits: int) -> Integers:
        """The private scores of all candidates of one target, of sensitivity 2^bits at most."""
        return self._scores(target, self._candidates(target), bits)

    def _scores(
        self, target: int, listed: tuple[list[tuple[int, ...]], Integers], bits: int
    ) -> Integers:
        if self._plan.options.sensitivity is Sensitivity.GLOBAL:
            return scaled_floor(listed[1], largest_change(self._plan.rows, self.grid), bits)
        return dampened(*self._measured(target, listed), bits)

    def measured(self, target: int) -> tuple[Integers, ContextSensitivity]:
        """Private: u of all candidates of one target and their common δ, in grid steps."""
        return self._measured(target, self._candidates(target))

    def _measured(
        self, target: int, listed: tuple[list[tuple[int, ...]], Integers]
    ) -> tuple[Integers, ContextSensitivity]:
        plan, (candidates, utilities) = self._plan, listed
        unit = unit_steps(plan.levels[target], self.grid)
        delta = ContextSensitivity(
            levels=self._purest(target, candidates),
            sums=self._sums,
            unit=unit,
            replace=plan.replace,
            cap=largest_change(plan.rows, self.grid),
            rows=plan.rows,
        )
        return utilities + self._rows * unit, delta

    def _single(self, target: int) -> tuple[list[tuple[int, ...]], Integers]:
        """Each other attribute and its q."""
        others = self._plan.others(target)
        tables = [self._pairs.of(x, target) for x in others]
        utilities = [self._q(table) for table in tables]
        return [(x,) for x in others], np.array(utilities, np.int64)

    def _q(self, table: Integers) -> int:
        return int(self._sums[table].sum() - self._sums[table.sum(axis=1)].sum())

    def _subsets(self, target: int) -> tuple[list[tuple[int, ...]], Integers]:
        """Each set of k other attributes and its q: two entropies, shared between targets."""
        found = self._entropies
        candidates = list(combinations(self._plan.others(target), self._plan.size))
        utilities = [found[tuple(sorted((*s, target)))] - found[s] for s in candidates]
        return candidates, np.array(utilities, np.int64)

    def _all_subsets(self) -> dict[tuple[int, ...], int]:
        """ΣΦ of every set of attributes that any target needs."""
        plan = self._plan
        found: dict[tuple[int, ...], int] = {}
        numbers = range(len(plan.attributes))
        several = len(plan.targets) > 1
        for size in (plan.size, plan.size + 1):
            listed = [
                subset
                for subset in combinations(numbers, size)
                if several or (plan.targets[0] in subset) == (size > plan.size)
            ]
            sums = subset_sums(
                self._codes, self._levels, np.array(listed, np.int64), self._sums, self._executor
            )
            found.update(zip(listed, sums.tolist(), strict=True))
        return found

    def _purest(self, target: int, candidates: list[tuple[int, ...]]) -> RarestPairs:
        if self._plan.options.context is Context.MAX_RELEVANCE:
            return merged_levels([self._pairs.of(x, target) for (x,) in candidates])
        listed = np.array(candidates, np.int64)
        found = purest_levels(
            self._codes, self._levels, target, listed, self._executor, self._plan.rows
        )
        return merged_purest(found)
