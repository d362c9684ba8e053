"""Candidates over a table have the names of the domain; unknown ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf

TABLE = Dataset(
    "adult",
    NeighbouringRelation.ADD_REMOVE,
    TableDomain(
        (
            CategoricalAttribute("sex", ("F", "M"), missing="?"),
            NumericAttribute("age", 0.0, 100.0, (0.0, 50.0, 100.0), missing=""),
            CategoricalAttribute("income", ("low", "high")),
            CategoricalAttribute("planet", ("earth",)),
        ),
        max_rows=100,
    ),
)
GRAPH = Dataset("graph", NeighbouringRelation.EDGE, GraphDomain(4, 3))
LEAVES: tuple[Any, ...] = ({"label": "low"}, {"label": "high"})


def test_attributes_are_named_in_their_order() -> None:
    candidates = Attributes(("age", "sex"), "income")
    assert candidates.kind == "attributes"
    assert candidates.count(TABLE) == 2
    assert [candidates.label(TABLE, i) for i in range(2)] == ["age", "sex"]
    assert candidates.classes(TABLE).levels == ("low", "high")


def test_values_are_all_public_levels() -> None:
    assert ValuesOf("sex").kind == "values"
    assert [ValuesOf("sex").label(TABLE, i) for i in range(3)] == ["F", "M", "?"]
    ages = ValuesOf("age")
    assert [ages.label(TABLE, i) for i in range(ages.count(TABLE))] == ["[0,50)", "[50,100]", ""]


def test_trees_are_named_by_their_place() -> None:
    candidates = Trees(LEAVES, "income", "high")
    assert (candidates.kind, candidates.count(TABLE)) == ("trees", 2)
    assert [candidates.label(TABLE, i) for i in range(2)] == [0, 1]
    assert candidates.forest(TABLE) is candidates.forest(TABLE)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Attributes(("sex",), "income"),
        lambda: Attributes((), "income"),
        lambda: Attributes(("sex", "age", "sex"), "income"),
        lambda: Attributes(("sex", "income"), "income"),
        lambda: Trees(LEAVES[:1], "income", "high"),
        lambda: Trees((*LEAVES, LEAVES[0]), "income", "high"),
        lambda: Trees(({"label": "low"}, {"leaf": "high"}), "income", "high"),
    ],
)
def test_lists_that_no_dataset_could_serve_are_refused(make: Any) -> None:
    with pytest.raises(ValueError):
        make()


def test_all_trees_together_are_bounded() -> None:
    def chain(number: int) -> dict[str, Any]:
        tree: dict[str, Any] = {"label": "low"}
        for _ in range(11):
            tree = {"attribute": "sex", "value": str(number), "equal": tree, "other": tree}
        return tree

    with pytest.raises(ValueError, match="together"):
        Trees(tuple(chain(number) for number in range(17)), "income", "high")


@pytest.mark.parametrize(
    "candidates",
    [
        Attributes(("sex", "age"), "income"),
        ValuesOf("sex"),
        Trees(LEAVES, "income", "high"),
    ],
)
def test_a_graph_has_none_of_them(candidates: Any) -> None:
    with pytest.raises(UnsupportedQuery, match="tables"):
        candidates.count(GRAPH)
    with pytest.raises(UnsupportedQuery, match="tables"):
        candidates.label(GRAPH, 0)


@pytest.mark.parametrize(
    "candidates",
    [
        Attributes(("sex", "height"), "income"),
        Attributes(("sex", "age"), "wealth"),
        Attributes(("sex", "age"), "planet"),
        ValuesOf("height"),
        ValuesOf("planet"),
        Trees(LEAVES, "wealth", "high"),
        Trees(LEAVES, "income", "middle"),
        Trees(({"label": "middle"}, {"label": "low"}), "income", "high"),
        Trees(({"label": "earth"}, {"label": "mars"}), "planet", "earth"),
    ],
)
def test_what_the_domain_lacks_is_unsupported(candidates: Any) -> None:
    with pytest.raises(UnsupportedQuery):
        candidates.count(TABLE)
