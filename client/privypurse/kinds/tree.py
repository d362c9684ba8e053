"""``tree``: decision trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from privypurse.amounts import Number
from privypurse.kinds.query import Call, Query, Selector, Sensitivity
from privypurse.trees import Trees

Algorithm = Literal["id3", "evolutionary"]


class Options(TypedDict, total=False):
    """``criterion`` and ``prune`` belong to id3, later options to the evolutionary search."""

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
    """A decision tree with noisy class counts, or several of high rates for one class."""
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
        """A decision tree, or several."""
        return self.ask(dataset, tree(algorithm, **options), epsilon=epsilon, key=key)
