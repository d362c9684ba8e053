"""The base classes of tree queries, with the fields that several algorithms share."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import Field, PrivateAttr

from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.candidates import Text, class_of
from app.queries.parts.query import Query
from app.queries.parts.sentences import listing
from mechanisms.model.domains import Dataset
from mechanisms.selection import SELECTORS, Selector
from mechanisms.trees.expectation import expected_best
from mechanisms.trees.task import Task

#: The name of an accuracy that a quote predicts or takes as a target: the error of a noisy class
#: count in a leaf at the full depth.
COUNT_TARGET = "leaf_count_error"
#: Bytes for each released count: its copies, its interval and its JSON.
COUNT_BYTES = 1000

#: A quote for id3, a forest or naive Bayes says which of the three is likely to predict best at its
#: depth. Naive Bayes has no depth, so its quote assumes this depth, the default of the others.
DEPTH = 5


def expected(loss: PrivacyLoss) -> str:
    """Returns the sentence of a quote about the expectation, which there is for losses in ε."""
    if loss.unpriced:
        return ""
    return (
        " By public facts alone, `expected_best` of id3, forest and naive_bayes is likely to "
        "predict best at this loss and depth."
    )


class TreeQuery(Query):
    """A query for decision trees, or for another model that predicts a class.

    A model may read ``attributes``, by default all attributes except the class attribute.
    It predicts ``class_attribute``, by default the one registered with the dataset.
    """

    name: ClassVar[str] = "tree"
    source: ClassVar[str]

    kind: Literal["tree"]
    attributes: tuple[Text, ...] | None = Field(default=None, min_length=1, max_length=1000)
    class_attribute: Text | None = None

    def _task(self, dataset: Dataset) -> Task:
        return Task.of(dataset, self.attributes, self._class(dataset))

    def _class(self, dataset: Dataset) -> str:
        return class_of(dataset, self.class_attribute)

    def _expectation(self, dataset: Dataset, loss: PrivacyLoss, max_depth: int) -> dict[str, str]:
        """Returns the learner that public facts expect the best at this loss, for a quote.

        ``loss`` is that of a change of one record of ``dataset``, under its relation. The rule was
        fitted to Laplace noise, so there is no expectation for a loss in ρ alone.
        """
        if loss.unpriced:
            return {}
        return {"expected_best": expected_best(self._task(dataset), dataset, loss, max_depth)}

    def _inputs(self) -> str:
        return "all other attributes" if self.attributes is None else listing(self.attributes)


class SelectingQuery(TreeQuery):
    """The base class of the algorithms that select splits or trees privately."""

    selector: Literal["permute_and_flip", "exponential"] = "permute_and_flip"

    #: True for an account that counts in ρ. A leaf above the full depth counts its classes with all
    #: loss that its path from the root has not spent. If that were the rest of ε, its ρ could be so
    #: large that the path costs more ρ than the longest path. So the leaf takes the rest of ρ.
    _leaves_in_rho: bool = PrivateAttr(default=False)

    def in_rho(self) -> Self:
        return self.model_copy().count_rho()

    def count_rho(self) -> Self:
        """Let the leaves of this query, a copy of its own, take what is left of ρ."""
        self._leaves_in_rho = True
        return self

    def _selector(self) -> Selector:
        return SELECTORS[self.selector]
