"""The controls of a table: its rows and columns, and what is measured in its cells."""

import json
from typing import Any

from app.contract.datasets import Facts
from app.contract.errors import InvalidRequest
from app.dashboard.controls import Control
from app.dashboard.forms import Form
from app.queries.parts.form import FormField, Option

#: The choice "no groups" leaves the rows or the columns of a table ungrouped.
NO_GROUPS = Option("", "no groups")


def group_control(field: FormField, facts: Facts, texts: Form) -> Control:
    """The control of rows, columns and further groups, or of all groups as JSON."""
    attributes = tuple(Option(one.name, one.name) for one in facts.attributes)
    # Before a user has chosen, the table has one row for each value of the first attribute.
    rows = texts.get(f"{field.name}.rows")
    if not texts.all(f"{field.name}.rows"):
        rows = attributes[0].value
    return Control(
        name=field.name,
        control="groups",
        label="Groups",
        help="Every combination of their values is one cell of the table.",
        options=(NO_GROUPS, *attributes),
        values=tuple(texts.all(f"{field.name}.more")),
        weights={
            "rows": rows,
            "columns": texts.get(f"{field.name}.columns"),
            "json": texts.get(f"{field.name}.json"),
        },
    )


def groups_of(control: Control) -> list[Any]:
    """The groups in the form's fields, in the syntax of the API. Raises: InvalidRequest."""
    if control.weights["json"]:
        return _list(control)
    sides = [control.weights["rows"], control.weights["columns"]]
    return list(dict.fromkeys(name for name in (*sides, *control.values) if name))


def measure_control(field: FormField, texts: Form) -> Control:
    """The control of measures as check boxes, or as JSON; at first the first one is ticked."""
    ticked = tuple(texts.all(field.name)) or (field.options[0].value,)
    return Control(
        name=field.name,
        control="measures",
        label="Measures",
        help="They share the charge equally.",
        options=field.options,
        values=ticked,
        weights={"json": texts.get(f"{field.name}.json")},
    )


def measures_of(control: Control) -> list[Any]:
    """The measures in the form's fields, in the syntax of the API. Raises: InvalidRequest."""
    if control.weights["json"]:
        return _list(control)
    return [_measure(text) for text in control.values]


def _measure(text: str) -> dict[str, str]:
    name, _, attribute = text.partition(":")
    return {"name": name, "attribute": attribute} if attribute else {"name": name}


def _list(control: Control) -> list[Any]:
    """The list that a person wrote as JSON; the model of the query validates what is in it."""
    try:
        value = json.loads(control.weights["json"])
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        raise InvalidRequest.at(control.name, type="json", msg="a JSON list is required")
    return value
