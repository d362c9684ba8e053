"""Descriptions become domains; invalid combinations are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from accounting.account import Limit
from accounting.privacy_loss import NANO
from app.contract.descriptions import Registration, described, relation
from app.contract.errors import field_errors
from mechanisms.model.domains import (
    CategoricalAttribute,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)

registrations: TypeAdapter[Any] = TypeAdapter(Registration)

CAP = {"epsilon": "20"}
GRAPH = {"name": "g", "kind": "graph", "nodes": {"count": 5}, "cap": CAP}
SEX = {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]}
AGE = {"name": "age", "kind": "numeric", "bounds": [0, 120], "bins": 10}
TABLE = {
    "name": "t",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 100,
    "attributes": [SEX, AGE],
    "class_attribute": "sex",
    "cap": CAP,
}
PREFIX = {"name": "p", "kind": "prefix", "public_values": [1, 2, 2, 5.5], "cap": CAP}


def read(body: dict[str, Any]) -> Any:
    return registrations.validate_json(json.dumps(body))


def without(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


def table_of(*attributes: dict[str, Any]) -> dict[str, Any]:
    return {**without(TABLE, "class_attribute"), "attributes": list(attributes)}


def test_a_graph_of_a_count() -> None:
    graph = read(GRAPH)
    assert graph.domain() == GraphDomain(nodes=5, max_degree=4)
    assert relation(graph) is NeighbouringRelation.EDGE
    assert graph.cap == Limit(20 * NANO)
    assert described(graph) == {
        "kind": "graph",
        "neighbouring": "edge",
        "description": "",
        "records_per_person": 1,
        "nodes": {"count": 5},
    }


@pytest.mark.parametrize("ids", [[7, 3, 9], ["b", "a", "c"]])
def test_a_graph_of_names_keeps_their_type_and_does_not_serve_the_list(ids: list[Any]) -> None:
    graph = read({**GRAPH, "nodes": {"ids": ids}, "max_degree": 2})
    domain = graph.domain()
    assert [domain.label(i) for i in range(3)] == ids
    assert described(graph)["nodes"] == {"count": 3}
    assert described(graph)["max_degree"] == 2


def test_a_graph_whose_nodes_are_still_to_come() -> None:
    graph = read({**without(GRAPH, "nodes"), "max_degree": 1000})
    assert graph.domain() is None
    assert described(graph)["nodes"] is None


def test_a_table() -> None:
    age = {**AGE, "missing": "?", "clamp": True, "bins": [0, 18, 65, 120]}
    table = read({**TABLE, "attributes": [{**SEX, "missing": "?"}, age], "min_rows": 3})
    assert table.domain() == TableDomain(
        attributes=(
            CategoricalAttribute("sex", ("Female", "Male"), "?"),
            NumericAttribute("age", 0, 120, (0, 18, 65, 120), "?", True),
        ),
        class_attribute="sex",
        max_rows=100,
        min_rows=3,
    )


def test_a_table_of_persons() -> None:
    table = read({**TABLE, "person": "id", "records_per_person": 8})
    assert table.domain().person == "id"
    assert [one.name for one in table.domain().attributes] == ["sex", "age"]
    assert described(table)["person"] == "id"
    assert "person" not in described(read(TABLE))


def test_bins_of_a_count_are_of_equal_width_and_end_at_the_bounds() -> None:
    age = read(TABLE).domain().attribute("age")
    assert age.edges == tuple(12 * i for i in range(11))
    assert read(table_of({**AGE, "bins": 3})).domain().attribute("age").edges == (0, 40, 80, 120)
    assert read(table_of(without(AGE, "bins"))).domain().attribute("age").edges == (0, 120)


def test_a_replace_table_may_leave_its_rows_to_the_first_upload() -> None:
    body = {**without(TABLE, "max_rows"), "neighbouring": "replace"}
    assert read(body).domain().rows is None
    assert read({**body, "rows": 10}).domain().rows == 10


def test_a_prefix() -> None:
    prefix = read(PREFIX)
    assert prefix.domain() == PrefixDomain((1, 2, 2, 5.5))
    assert relation(prefix) is NeighbouringRelation.PREFIX


INVALID = {
    "no kind": without(GRAPH, "kind"),
    "unknown kind": {**GRAPH, "kind": "stream"},
    "unknown field": {**GRAPH, "colour": "red"},
    "no cap": without(GRAPH, "cap"),
    "cap above the most": {**GRAPH, "cap": {"epsilon": "1000000001"}},
    "blank in a name": {**GRAPH, "name": "a b"},
    "slash in a name": {**GRAPH, "name": "a/b"},
    "line break after a name": {**GRAPH, "name": "a\n"},
    "empty name": {**GRAPH, "name": ""},
    "long name": {**GRAPH, "name": "a" * 101},
    "letters outside ASCII": {**GRAPH, "name": "café"},
    "graph with add_remove": {**GRAPH, "neighbouring": "add_remove"},
    "no nodes at all": {**GRAPH, "nodes": {"count": 0}},
    "true nodes": {**GRAPH, "nodes": {"count": True}},
    "fractional nodes": {**GRAPH, "nodes": {"count": 5.0}},
    "count and ids": {**GRAPH, "nodes": {"count": 2, "ids": [1, 2]}},
    "empty ids": {**GRAPH, "nodes": {"ids": []}},
    "repeated ids": {**GRAPH, "nodes": {"ids": [1, 2, 1]}},
    "mixed ids": {**GRAPH, "nodes": {"ids": [1, "2"]}},
    "true among ids": {**GRAPH, "nodes": {"ids": [1, True]}},
    "id beyond 64 bits": {**GRAPH, "nodes": {"ids": [2**63]}},
    "empty id": {**GRAPH, "nodes": {"ids": [""]}},
    "degree of all nodes": {**GRAPH, "max_degree": 5},
    "negative degree": {**GRAPH, "max_degree": -1},
    "no people": {**GRAPH, "records_per_person": 0},
    "table without relation": without(TABLE, "neighbouring"),
    "table of edges": {**TABLE, "neighbouring": "edge"},
    "add_remove without max_rows": without(TABLE, "max_rows"),
    "add_remove with rows": {**TABLE, "rows": 10},
    "min above max": {**TABLE, "min_rows": 101},
    "replace with max_rows": {**TABLE, "neighbouring": "replace"},
    "replace with min_rows": {
        **without(TABLE, "max_rows"),
        "neighbouring": "replace",
        "min_rows": 0,
    },
    "person who replaces": {
        **without(TABLE, "max_rows"),
        "neighbouring": "replace",
        "person": "id",
    },
    "person among attributes": {**TABLE, "person": "age"},
    "person and open values": {
        **TABLE,
        "person": "id",
        "attributes": [
            *TABLE["attributes"],
            {"name": "word", "kind": "categorical", "values": "open"},
        ],
    },
    "person of a graph": {**GRAPH, "person": "id"},
    "blank in the column of persons": {**TABLE, "person": "an id"},
    "no attributes": table_of(),
    "repeated attribute": table_of(SEX, SEX),
    "class that is none": {**TABLE, "class_attribute": "income"},
    "class without bins": {**table_of(SEX, without(AGE, "bins")), "class_attribute": "age"},
    "no values": table_of({**SEX, "values": []}),
    "repeated values": table_of({**SEX, "values": ["a", "a"]}),
    "number among values": table_of({**SEX, "values": ["a", 1]}),
    "values and bounds": table_of({**SEX, "bounds": [0, 1]}),
    "no bounds": table_of(without(AGE, "bounds")),
    "three bounds": table_of({**AGE, "bounds": [0, 1, 2]}),
    "bounds upside down": table_of({**AGE, "bounds": [1, 0]}),
    "equal bounds": table_of({**AGE, "bounds": [1, 1]}),
    "huge bounds": table_of({**AGE, "bounds": [0, 1e300]}),
    "no bins": table_of({**AGE, "bins": 0}),
    "true bins": table_of({**AGE, "bins": True}),
    "bins too narrow for floats": table_of({**AGE, "bounds": [1, 1.0000000000000004], "bins": 9}),
    "one edge": table_of({**AGE, "bins": [0]}),
    "edges out of order": table_of({**AGE, "bins": [0, 60, 50, 120]}),
    "repeated edge": table_of({**AGE, "bins": [0, 60, 60, 120]}),
    "edges that miss a bound": table_of({**AGE, "bins": [0, 60, 119]}),
    "number as the text of a missing cell": table_of({**AGE, "missing": "-1"}),
    "graph fields on a table": {**TABLE, "max_degree": 5},
    "unsorted prefix": {**PREFIX, "public_values": [2, 1]},
    "empty prefix": {**PREFIX, "public_values": []},
    "prefix of texts": {**PREFIX, "public_values": ["a"]},
}


@pytest.mark.parametrize("body", INVALID.values(), ids=INVALID.keys())
def test_what_means_nothing_is_refused(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read(body)


def test_one_bad_attribute_is_one_error() -> None:
    """Danger: the list that lacks what was refused is too short, and was stated as well."""
    body = table_of({**AGE, "bounds": [120, 0]})
    with pytest.raises(ValidationError) as refused:
        read(body)
    (error,) = field_errors(refused.value.errors())
    assert error.msg == "the lower bound is below the upper bound"
    with pytest.raises(ValidationError) as refused:
        read(table_of())
    (error,) = field_errors(refused.value.errors())
    assert error.type == "too_short"
