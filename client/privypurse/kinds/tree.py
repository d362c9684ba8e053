"""The kind of query ``tree``, whose answer is one or more decision trees, or naive Bayes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

from privypurse.amounts import Number
from privypurse.answers.naive_bayes import NaiveBayes
from privypurse.answers.trees import Trees
from privypurse.kinds.query import Call, Query, Selector, Sensitivity
from privypurse.levels import Columns

Algorithm = Literal["id3", "evolutionary", "forest", "naive_bayes"]
#: The algorithms whose answers are trees.
Growing = Literal["id3", "evolutionary", "forest"]


class Options(TypedDict, total=False):
    """``criterion`` and ``prune`` are for id3; the options below them for evolutionary search.

    ``trees`` and ``splits`` are for a forest. ``naive_bayes`` takes ``attributes`` and
    ``class_attribute`` alone.
    """

    attributes: Sequence[str]
    class_attribute: str
    max_depth: int
    sensitivity: Sensitivity
    selector: Selector
    criterion: Literal["information_gain", "gini", "max"]
    prune: bool
    positive_class: str
    objective: Literal["weighted_sum", "pareto", "front"]
    weights: Mapping[str, float]
    population: int
    generations: int
    selected: int
    initial_depth: int
    outputs: int
    trees: int
    splits: Literal["random", "private"]


@overload
def tree(algorithm: Growing = "id3", **options: Unpack[Options]) -> Query[Trees]: ...
@overload
def tree(algorithm: Literal["naive_bayes"], **options: Unpack[Options]) -> Query[NaiveBayes]: ...
def tree(algorithm: Algorithm = "id3", **options: Unpack[Options]) -> Query[Any]:
    """A query for a tree with noisy class counts, for trees of a search, or for naive Bayes."""
    return Query({"kind": "tree", "algorithm": algorithm, **options}, read, described=True)


def read(reply: Mapping[str, Any], columns: Columns) -> Trees | NaiveBayes:
    """The answer in a reply. Stored queries may name no algorithm, so the answer itself tells."""
    if "model" in reply["answer"]:
        return NaiveBayes.read(reply, columns)
    return Trees.read(reply, columns)


class TreeCall(Call):
    @overload
    def tree(
        self,
        dataset: str,
        algorithm: Growing = "id3",
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Trees: ...
    @overload
    def tree(
        self,
        dataset: str,
        algorithm: Literal["naive_bayes"],
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> NaiveBayes: ...
    def tree(
        self,
        dataset: str,
        algorithm: Algorithm = "id3",
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Trees | NaiveBayes:
        """Pay for a query of kind ``tree`` and return its decision trees or its naive Bayes.

        ``rho`` in place of ``epsilon``: Gaussian noise on the counts, in accounts that allow it.
        """
        query: Query[Any] = tree(algorithm, **options)
        answer: Trees | NaiveBayes = self.ask(dataset, query, epsilon=epsilon, rho=rho, key=key)
        return answer
