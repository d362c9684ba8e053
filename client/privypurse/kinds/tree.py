"""The kind of query ``tree``, whose answer is one or more decision trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from privypurse.amounts import Number
from privypurse.kinds.query import Call, Query, Selector, Sensitivity
from privypurse.trees import Trees

Algorithm = Literal["id3", "evolutionary"]


class Options(TypedDict, total=False):
    """``criterion`` and ``prune`` are for id3; all options below them for evolutionary search."""

    attributes: Sequence[str]
    class_attribute: str
    max_depth: int
    sensitivity: Sensitivity
    selector: Selector
    criterion: Literal["information_gain", "gini", "max"]
    prune: bool
    positive_class: str
    objective: Literal["weighted_sum", "pareto"]
    weights: Mapping[str, float]
    population: int
    generations: int
    selected: int
    initial_depth: int
    outputs: int


def tree(algorithm: Algorithm = "id3", **options: Unpack[Options]) -> Query[Trees]:
    """A query for a tree with noisy class counts (id3), or for trees of an evolutionary search."""
    return Query({"kind": "tree", "algorithm": algorithm, **options}, Trees.read, described=True)


class TreeCall(Call):
    def tree(
        self,
        dataset: str,
        algorithm: Algorithm = "id3",
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Trees:
        """Pay for a query of kind ``tree`` and return its decision trees."""
        return self.ask(dataset, tree(algorithm, **options), epsilon=epsilon, key=key)
