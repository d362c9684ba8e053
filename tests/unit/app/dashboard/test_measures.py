"""The controls of a table give the groups and measures that a program would write."""

from __future__ import annotations

from typing import Any

import pytest

from app.contract.datasets import AttributeFacts, Facts
from app.contract.errors import InvalidRequest
from app.dashboard.builder import Builder, build
from app.dashboard.forms import Form

FACTS = Facts(
    "t",
    "table",
    "add_remove",
    (
        AttributeFacts("sex", ("f", "m"), None),
        AttributeFacts("town", ("a", "b"), None),
        AttributeFacts("age", (), (0.0, 120.0)),
    ),
)


def query(**fields: Any) -> dict[str, Any]:
    form = Form({name: one if isinstance(one, list) else [one] for name, one in fields.items()})
    builder: Builder = build(FACTS, "table", "", form)
    body = builder.query(form)
    return {"by": body["by"], "aggregates": body["aggregates"]}


def test_a_new_form_counts_by_the_first_attribute() -> None:
    assert query() == {"by": ["sex"], "aggregates": [{"name": "count"}]}


def test_rows_columns_and_further_groups_come_in_this_order_and_once() -> None:
    fields = {"by.rows": "town", "by.columns": "age", "by.more": ["sex", "town"]}
    assert query(**fields)["by"] == ["town", "age", "sex"]
    assert query(**{"by.rows": "", "by.columns": ""})["by"] == []


def test_measures_are_those_that_are_ticked() -> None:
    assert query(aggregates=["count", "mean:age"])["aggregates"] == [
        {"name": "count"},
        {"name": "mean", "attribute": "age"},
    ]


def test_json_replaces_the_controls() -> None:
    edges = '[{"attribute": "age", "edges": [0, 9]}]'
    share = '[{"name": "count", "share": 1}]'
    assert query(**{"by.rows": "sex", "by.json": edges, "aggregates.json": share}) == {
        "by": [{"attribute": "age", "edges": [0, 9]}],
        "aggregates": [{"name": "count", "share": 1}],
    }


@pytest.mark.parametrize("name", ["by.json", "aggregates.json"])
@pytest.mark.parametrize("text", ["{", "3", "[" * 100_000])
def test_what_is_no_list_is_refused_at_its_field(name: str, text: str) -> None:
    with pytest.raises(InvalidRequest):
        query(**{name: text})
