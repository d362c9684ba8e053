"""Private naive Bayes: noisy counts of each class, and of each value within each class.

A record is in one cell of every table of ``ClassCounts``: in that of the classes alone, and in one
cell per attribute. So each of the d + 1 tables has an equal share of the loss. What follows reads
released counts alone.
"""

from dataclasses import dataclass

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.sensitivity import Integers
from mechanisms.tables.suppression import Truths, suppressed
from mechanisms.trees.class_counts import ClassCounts, release_counts
from mechanisms.trees.task import Task


@dataclass(frozen=True)
class ReleasedCounts:
    """Noisy counts of shape (classes,) or (classes, levels): public.

    A true count is within ``error`` of its value with a probability of at least ``CONFIDENCE``.
    ``suppressed`` has the same shape; None where the dataset suppresses no counts.
    """

    values: Integers
    error: int
    suppressed: Truths | None


@dataclass(frozen=True)
class Model:
    """A released model; ``attributes`` holds the counts of each attribute of the task, in order."""

    prior: ReleasedCounts
    attributes: tuple[ReleasedCounts, ...]


def class_counts(task: Task, dataset: Dataset, loss: PrivacyLoss) -> ClassCounts:
    """The plan of the tables of a model: the classes first, then one table per attribute."""
    groups = ((), *((one.name,) for one in task.attributes))
    return ClassCounts(groups, task.classes.name, dataset, loss)


def learn(context: QueryContext, plan: ClassCounts) -> Model:
    """A naive Bayes model of noisy counts, at the loss of the plan.

    Args:
        plan: from ``class_counts``.

    Raises: UnsupportedQuery as ``ClassCounts``, before anything private is read.
    Privacy: ``plan.loss`` under the dataset's relation, both ``add_remove`` and ``replace``.
    Source: Vaidya, Shafiq, Basu, Hong 2013, with the exact noise and the public domains of tables.
    """
    released = [np.ascontiguousarray(table.T) for table in release_counts(context, plan)]
    hidden = _suppressed(released, plan.dataset.minimum_count)
    prior, *attributes = (
        ReleasedCounts(values, plan.error, hidden[place]) for place, values in enumerate(released)
    )
    return Model(prior, tuple(attributes))


def _suppressed(counts: list[Integers], minimum: int) -> list[Truths | None]:
    """Which counts are left out of the answer; None where the owner set no minimum.

    Every count below the minimum is left out. If it would be the only one missing from a row or a
    column, it could be computed from the others and their total, so a second one is left out too.
    """
    if not minimum:
        return [None] * len(counts)
    prior, *attributes = (values.astype(np.float64) for values in counts)
    of_classes = prior < minimum
    of_values: list[Truths] = []
    for values in attributes:
        # In the table of each attribute, the class counts are the totals. So they are suppressed
        # together with the counts of the table.
        hidden = suppressed({(0,): [prior], (0, 1): [values]}, minimum)
        of_classes |= hidden[0,]
        of_values.append(hidden[0, 1])
    return [of_classes, *of_values]
