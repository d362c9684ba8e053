"""Tree queries by naive Bayes: noisy counts of classes, and of the values within each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from accounting.composition import for_group
from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.accuracy import CONFIDENCE, least_loss, only
from app.queries.parts.conversion import charge_for, mechanism_loss
from app.queries.parts.cost import memory
from app.queries.parts.query import Price, QueryContext
from app.queries.parts.sentences import version_of
from app.queries.parts.suppression import suppressed
from app.queries.tree.common import COUNT_BYTES, DEPTH, TreeQuery, expected
from mechanisms.model.domains import Dataset
from mechanisms.model.number import whole_number, whole_numbers
from mechanisms.model.release import Release
from mechanisms.model.work import Work
from mechanisms.trees.class_counts import ClassCounts
from mechanisms.trees.naive_bayes import Model, ReleasedCounts, class_counts, learn
from mechanisms.trees.task import Task

#: The name of the accuracy that a quote predicts or takes as a target: the error of a noisy count.
COUNT_TARGET = "count_error"


class NaiveBayes(TreeQuery):
    """Releases a naive Bayes model, whose counts predict the class of a record."""

    title: ClassVar[str] = "Private naive Bayes"
    description: ClassVar[str] = (
        "Noisy counts of each class, and of each value of each attribute within each class. It "
        "takes the values of a record as independent within a class."
    )
    source: ClassVar[str] = (
        "Vaidya, Shafiq, Basu, Hong, Differentially private naive Bayes classification, WI 2013, "
        "with exact noise on the public domain of a table"
    )
    targets: ClassVar[tuple[str, ...]] = (COUNT_TARGET,)
    gaussian: ClassVar[bool] = True

    algorithm: Literal["naive_bayes"]

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        share, conversion = mechanism_loss(dataset, loss)
        plan = self._plan(dataset, share)
        steps = for_group(plan.steps(), dataset.records_per_person)
        return Price((*steps, *conversion), lambda: self._accuracy(plan))

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        error = only(target, COUNT_TARGET)

        def reached(loss: PrivacyLoss) -> float:
            return self._plan(dataset, loss).error

        return charge_for(dataset, least_loss(reached, error))

    def memory(self, dataset: Dataset) -> int:
        task = self._task(dataset)
        counts = task.cells + len(task.labels)
        return memory(dataset, record=0, more=counts * COUNT_BYTES)

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        share, _ = mechanism_loss(dataset, loss)
        return self._plan(dataset, share).work()

    def lowerable(self) -> tuple[str, ...]:
        return ("attributes",)

    def compute(self, context: QueryContext) -> Release:
        share, _ = mechanism_loss(context.dataset, context.loss)
        plan = self._plan(context.dataset, share)
        model = learn(context.at(share), plan)
        body = _as_json(model, self._task(context.dataset))
        return Release({"model": body, "confidence": CONFIDENCE})

    def question(self, dataset: Dataset, version: int) -> str:
        apart = "" if len(self.attributes or "all") == 1 else ", one attribute at a time"
        return (
            f"How many records of {version_of(dataset, version)} have each value of "
            f"{self._class(dataset)} and, for each of these values, how many have each value of "
            f"{self._inputs()}{apart}?"
        )

    def _accuracy(self, plan: ClassCounts) -> dict[str, Any]:
        return {
            "confidence": CONFIDENCE,
            COUNT_TARGET: plan.error,
            **self._expectation(plan.dataset, plan.loss, DEPTH),
            "explanation": (
                f"With this probability a count of the model is off by at most `{COUNT_TARGET}`. "
                "The fewer attributes there are, the less noise each count has."
                + expected(plan.loss)
            ),
        }

    def _plan(self, dataset: Dataset, share: PrivacyLoss) -> ClassCounts:
        return class_counts(self._task(dataset), dataset, share)


def _as_json(model: Model, task: Task) -> dict[str, Any]:
    """Returns the model as answers show it: counts per class, in the order of ``classes``."""
    of_attributes = zip(task.attributes, model.attributes, strict=True)
    return {
        "classes": list(task.labels),
        "prior": _columns(model.prior),
        "attributes": {
            one.name: {"values": list(one.levels), "counts": _numbers(counts)}
            for one, counts in of_attributes
        },
    }


def _columns(counts: ReleasedCounts) -> dict[str, Any]:
    """Returns the class counts as lists. Suppressed ones are null, and a list marks them."""
    lists = whole_numbers(counts.values.tolist(), counts.error)
    if counts.suppressed is None:
        return dict(lists)
    marks = counts.suppressed.tolist()
    columns = {
        name: [None if mark else value for value, mark in zip(values, marks, strict=True)]
        for name, values in lists.items()
    }
    return {**columns, "suppressed": marks}


def _numbers(counts: ReleasedCounts) -> list[list[dict[str, Any]]]:
    """Returns one list of released numbers per class."""
    shapes = [
        [whole_number(value, counts.error) for value in row] for row in counts.values.tolist()
    ]
    if counts.suppressed is None:
        return shapes
    return [
        [suppressed(one) if mark else one for one, mark in zip(row, marks, strict=True)]
        for row, marks in zip(shapes, counts.suppressed.tolist(), strict=True)
    ]
