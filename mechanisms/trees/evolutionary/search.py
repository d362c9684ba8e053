"""The private evolutionary search, which proposes trees publicly and selects them privately."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.forests import Confusion, confusion, forest_work
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.records import TableRecords
from mechanisms.model.work import Work, together, work
from mechanisms.selection import Selector
from mechanisms.trees.dice import Dice
from mechanisms.trees.evolutionary.proposals import Proposals, Tree, least_depth
from mechanisms.trees.evolutionary.questions import Questions
from mechanisms.trees.evolutionary.ranking import Ranking
from mechanisms.trees.evolutionary.tree_forms import as_json, flattened
from mechanisms.trees.task import Task
from mechanisms.utilities.tables import row_bound

#: The most nodes of all candidate trees of a search together. The work grows with these nodes times
#: the rows.
MAX_WORK = 1 << 22


@dataclass(frozen=True)
class Search:
    """The parameters: ``generations`` selections of ``selected`` trees, then one of ``outputs``.

    The first selection is among ``population`` random trees, each later one among the selected
    trees and ``population`` children of them.
    """

    task: Task
    fitness: Ranking
    selector: Selector
    positive_class: str
    population: int
    generations: int
    selected: int
    outputs: int
    initial_depth: int
    max_depth: int

    def __post_init__(self) -> None:
        if self.positive_class not in self.task.labels:
            raise UnsupportedQuery(
                "the positive class is not a level of the class attribute",
                supported={"positive_class": list(self.task.labels[:100])},
            )
        if self.initial_depth > self.max_depth:
            raise UnsupportedQuery("the initial depth is at most the depth of all trees")
        if self.generations and self.selected > self.population:
            raise UnsupportedQuery("more trees are selected than there are")
        if self.outputs > self.pools[-1]:
            raise UnsupportedQuery(
                "more trees are requested than there are", supported={"outputs": self.pools[-1]}
            )
        if sum(self.pools) << (self.max_depth + 1) > MAX_WORK:
            raise UnsupportedQuery(
                "the search is too large: all its candidates at full depth have too many nodes",
                supported={"nodes": MAX_WORK},
            )

    @cached_property
    def questions(self) -> Questions:
        return Questions(self.task)

    @property
    def pools(self) -> list[int]:
        """The number of candidates of each selection, including the last; public."""
        later = self.selected + self.population
        return [self.population, *[later] * self.generations]

    @property
    def draws(self) -> list[int]:
        """The number of trees that each selection draws."""
        return [self.selected] * self.generations + [self.outputs]

    def work(self, dataset: Dataset) -> Work:
        """The public work of the search; every proposed tree may be new, and full.

        The random trees at the start have the initial depth, and all later ones any depth.
        """
        levels, passes = self.task.levels, self.generations + 1
        random = 2 << least_depth(self.initial_depth, self.max_depth)
        proposed = self.population * (random + self.generations * (2 << self.max_depth))
        selections = [
            together(
                self.fitness.work(dataset, pool, draws),
                self.selector.work(pool, draws, "peeled"),
            )
            for pool, draws in zip(self.pools, self.draws, strict=True)
        ]
        counted = forest_work(
            row_bound(dataset), proposed, passes * len(levels), passes * sum(levels)
        )
        return together(work("proposals", proposed), counted, *selections)

    def losses(self, loss: PrivacyLoss) -> tuple[PrivacyLoss, ...]:
        """The loss of each selection in equal shares; the last one also has the remainder.

        All draws of a selection share its loss. The last selection draws the answer.
        """
        return self.shares(loss)[1].split(self.generations + 1)

    def shares(self, loss: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The loss of what the fitness releases first, if anything, and that of all selections."""
        share = self.fitness.share
        return loss.divided(share) if share else (PrivacyLoss(0), loss)

    def whole_for(self, loss: PrivacyLoss) -> PrivacyLoss:
        """The least whole loss that leaves this much to the selections."""
        whole = PrivacyLoss(int(loss.epsilon_nano / (1 - self.fitness.share)))
        while self.shares(whole)[1].epsilon_nano < loss.epsilon_nano:
            whole += PrivacyLoss(1)
        return whole

    def steps(self, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        """The steps that spend ``loss``; they add up to it exactly.

        Raises: UnsupportedQuery when a draw's share or a public bound is out of the range of exact
            arithmetic, or when no attribute can be tested.
        """
        assert self.questions.askable
        steps = [*self.fitness.first_steps(dataset, self.shares(loss)[0])]
        for call, (draws, pool, part) in enumerate(
            zip(self.draws, self.pools, self.losses(loss), strict=True)
        ):
            self.fitness.check(dataset, pool, draws)
            name = f"generation {call + 1}" if call < self.generations else "answer"
            steps += [
                replace(step, what=f"{name}: {step.what} among {pool} trees")
                for step in self.fitness.steps(self.selector, part, draws)
            ]
        return tuple(steps)


def search(context: QueryContext, request: Search) -> list[dict[str, Any]]:
    """The selected trees as nested JSON, in the order drawn.

    Raises: as ``Search.steps``, before anything private is read.
    Privacy: ``context.loss`` under the dataset's relation, by adaptive composition of the draws.
        Candidates come from the public schema, random bits and earlier draws alone, and counts
        never leave the selection.
    Source: Differentially Private Multi-Objective Selection, Algorithm 1, with the loss shared
        among all selections, and within each among its draws.
    """
    dataset = context.dataset
    request.steps(dataset, context.loss)
    positive = request.task.labels.index(request.positive_class)
    proposals = Proposals(
        request.questions, request.initial_depth, request.max_depth, Dice(context.randomness)
    )
    rows = row_bound(dataset)
    evaluation = _Evaluation(context.table, request.questions, positive, rows, context.executor)
    pool = [proposals.random() for _ in range(request.population)]
    first = context.at(request.shares(context.loss)[0])
    fitness = request.fitness.released(first, evaluation.of(pool))
    parents: list[Tree] = []
    for draws, part in zip(request.draws, request.losses(context.loss), strict=True):
        if parents:
            pool = parents + [proposals.child(parents) for _ in range(request.population)]
        counts = evaluation.of(pool)
        drawn = fitness.drawn(counts, draws, request.selector, context.at(part))
        parents = [pool[place] for place in drawn]
    other = next(label for label in request.task.labels if label != request.positive_class)
    return [as_json(tree, request.questions, request.positive_class, other) for tree in parents]


@dataclass
class _Evaluation:
    """Counts the rows that trees classify correctly; each distinct tree is evaluated once."""

    records: TableRecords
    questions: Questions
    positive: int
    most_rows: int
    executor: Executor
    counts: dict[Tree, tuple[int, int]] = field(default_factory=dict)
    classes: tuple[int, int] = (0, 0)

    def of(self, pool: list[Tree]) -> Confusion:
        """The private counts of all trees of a pool, after one pass over the rows for new trees."""
        new = list(dict.fromkeys(tree for tree in pool if tree not in self.counts))
        if new:
            forest = flattened(new, self.questions, self.positive)
            fresh = confusion(self.records, forest, self.executor, self.most_rows)
            counts = zip(fresh.true_positives.tolist(), fresh.true_negatives.tolist(), strict=True)
            self.counts.update(zip(new, counts, strict=True))
            self.classes = fresh.positives, fresh.negatives
        listed = np.array([self.counts[tree] for tree in pool], dtype=np.int64)
        return Confusion(listed[:, 0].copy(), listed[:, 1].copy(), *self.classes)
