"""A private forest: several trees of the same records, each at an equal share of the loss.

Every tree reads all records. To give each record to one tree by a secret coin would allow each tree
the whole loss, and gains nothing: a leaf would hold 1/T of the records under noise of 1/T the
scale, with the deviation of the coins on top. ``docs/dev/decisions`` has the comparison.

With random splits, the attributes of a tree are drawn from words that no record influences. So the
trees are tables of counts by class, whatever was drawn. With private splits each tree is a tree of
``id3`` over attributes that are drawn in the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import Any

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.number import whole_number
from mechanisms.model.sensitivity import Integers
from mechanisms.model.tree_shape import MAX_NODES
from mechanisms.model.work import Work, times, together, work
from mechanisms.noise.count_noise import variance
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK, Deviation
from mechanisms.noise.rate import Rate
from mechanisms.trees.class_counts import ClassCounts, Group, release_counts
from mechanisms.trees.dice import Dice
from mechanisms.trees.id3 import Budget, Id3, grow
from mechanisms.trees.id3.gaussian_budget import GaussianBudget
from mechanisms.trees.id3.grow import NODE
from mechanisms.trees.id3.stop_rule import least_count_of
from mechanisms.trees.task import Task
from mechanisms.utilities.tables import row_bound

#: The estimated run time of a node of a tree with random splits. It is less than half of the run
#: time of a node of ``id3``, which is counted, split by a private choice and labelled by itself.
PLAIN_NODE = NODE // 2


@dataclass(frozen=True)
class RandomSplits:
    """A forest whose trees split every node of one depth by one attribute, drawn at random.

    ``max_depth`` bounds the attributes of a tree. An attribute is left out of a tree where public
    facts say that its leaves would hold more noise than records.
    """

    task: Task
    trees: int
    max_depth: int

    @property
    def splits(self) -> int:
        return min(self.max_depth, len(self.task.attributes))

    @property
    def most_leaves(self) -> int:
        """The public bound on the leaves of one tree; all trees together are as large as one."""
        largest = prod(sorted(self.task.levels, reverse=True)[: self.splits])
        return max(1, min(largest, MAX_NODES // (2 * self.trees)))

    def counts(self, groups: Sequence[Group], dataset: Dataset, loss: PrivacyLoss) -> ClassCounts:
        return ClassCounts(tuple(groups), self.task.classes.name, dataset, loss)

    def steps(self, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        """One step per tree, whatever its attributes; they add up to the loss exactly."""
        plan = self.counts([()] * self.trees, dataset, loss)
        return tuple(
            replace(step, what=f"noisy class counts of the leaves of tree {number}")
            for number, step in enumerate(plan.steps(), 1)
        )

    def count_error(self, dataset: Dataset, loss: PrivacyLoss) -> int:
        """The error that a count of a leaf exceeds at most with chance ``MISS``."""
        return self.counts([()] * self.trees, dataset, loss).error

    def groups(self, dataset: Dataset, loss: PrivacyLoss, dice: Dice) -> list[Group]:
        """The attributes of each tree, in the order of its depths.

        Privacy: a function of public facts and of the dice.
        """
        share, rows = loss.shares(self.trees)[0], row_bound(dataset)
        classes = len(self.task.labels)

        def fits(leaves: int) -> bool:
            if leaves > self.most_leaves or not max(share.epsilon_nano, share.rho_femto):
                return False
            return least_count_of(_variance(share), leaves, classes) <= rows

        return [self._group(fits, dice) for _ in range(self.trees)]

    def _group(self, fits: Callable[[int], bool], dice: Dice) -> Group:
        names: list[str] = []
        leaves = 1
        for place in permutation(len(self.task.attributes), dice):
            levels = self.task.levels[place]
            if len(names) < self.splits and fits(leaves * levels):
                names.append(self.task.attributes[place].name)
                leaves *= levels
        return tuple(names)

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        """The public work, at the largest trees."""
        plan = self.counts([()] * self.trees, dataset, loss)
        leaves, classes = self.most_leaves, len(self.task.labels)
        rows, numbers = row_bound(dataset) * self.splits, 2 * leaves * classes
        one = together(
            work("rows of tables", rows),
            work("numbers of tables", numbers * (GAUSSIAN_WORK if loss.unpriced else 1)),
            work("nodes", 2 * leaves * PLAIN_NODE + leaves * classes),
        )
        return together(plan.work(), times(one, self.trees))


def random_forest(context: QueryContext, forest: RandomSplits) -> list[dict[str, Any]]:
    """Trees as nested JSON, each with noisy class counts at its leaves, at the loss of the context.

    Raises: UnsupportedQuery as ``ClassCounts``, before anything private is read.
    Privacy: the loss of the context under ``add_remove`` and ``replace``. Given the attributes,
        which are drawn independently of the records, the counts are ``ClassCounts``. A law that is
        private for each draw is private for a random draw that is shown.
    Source: Fletcher and Islam 2017 (random splits), with the loss shared in place of the records.
    """
    groups = forest.groups(context.dataset, context.loss, Dice(context.randomness))
    plan = forest.counts(groups, context.dataset, context.loss)
    attributes = {one.name: one for one in forest.task.attributes}

    def tree(place: int, counts: Integers, depth: int = 0) -> dict[str, Any]:
        if depth == len(groups[place]):
            return _leaf(forest.task.labels, counts.tolist(), plan.error)
        attribute = attributes[groups[place][depth]]
        below = [tree(place, one, depth + 1) for one in counts]
        branches = dict(zip(attribute.levels, below, strict=True))
        return {"attribute": attribute.name, "branches": branches}

    return [tree(place, counts) for place, counts in enumerate(release_counts(context, plan))]


@dataclass(frozen=True)
class PrivateSplits:
    """A forest of ``id3`` trees, each over two thirds of the attributes, drawn at random.

    ``id3`` states everything but the attributes of a tree; ``add_remove`` alone.
    """

    id3: Id3
    trees: int

    @property
    def attributes(self) -> int:
        """The number of attributes of one tree."""
        return -(-2 * len(self.id3.task.attributes) // 3)

    def budgets(self, loss: PrivacyLoss) -> list[Budget | GaussianBudget]:
        """The budget of each tree; the losses add up, and the last has the remainder."""
        splits = min(self.id3.max_depth, self.attributes)
        share, last = loss.shares(self.trees)
        budgets = [self.id3.budget(share, splits)] * (self.trees - 1)
        return [*budgets, self.id3.budget(last, splits)]

    def steps(self, loss: PrivacyLoss) -> tuple[Step, ...]:
        """The steps of all trees; nodes are bounded as if a tree could ask every attribute."""
        task = self.id3.task
        return tuple(
            replace(step, what=f"tree {number}, {step.what}")
            for number, budget in enumerate(self.budgets(loss), 1)
            for step in budget.steps(self.id3.selector, task.levels, len(task.labels))
        )

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        return times(self.id3.work(dataset, loss), self.trees)


def grown_forest(context: QueryContext, forest: PrivateSplits) -> list[dict[str, Any]]:
    """Trees as nested JSON, each grown by ``id3`` at its share of the loss of the context.

    Raises: UnsupportedQuery as ``grow``, before anything private is read.
    Privacy: the loss of the context under ``add_remove``: each tree is private at its share over
        any attributes, which are drawn independently of the records.
    """
    dice, task = Dice(context.randomness), forest.id3.task
    trees = []
    for budget in forest.budgets(context.loss):
        places = sorted(permutation(len(task.attributes), dice)[: forest.attributes])
        own = replace(task, attributes=tuple(task.attributes[place] for place in places))
        trees.append(grow(context.at(budget.loss), replace(forest.id3, task=own)))
    return trees


def _leaf(labels: Sequence[str], counts: list[int], error: int) -> dict[str, Any]:
    """A leaf with its released counts; its label is the class of the largest, the first of ties."""
    numbers = (whole_number(count, error) for count in counts)
    return {
        "label": labels[counts.index(max(counts))],
        "counts": dict(zip(labels, numbers, strict=True)),
    }


def _variance(share: PrivacyLoss) -> Fraction:
    """The variance of the noise of a count that one change moves by 1."""
    law = Deviation.of(share.rho_femto, 1) if share.unpriced else Rate.of_counts(share.epsilon_nano)
    return variance(law)


def permutation(count: int, dice: Dice) -> list[int]:
    """The numbers below ``count`` in an order that is uniform among all orders."""
    order = list(range(count))
    for last in range(count - 1, 0, -1):
        place = dice.below(last + 1)
        order[last], order[place] = order[place], order[last]
    return order
