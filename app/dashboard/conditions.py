"""A condition, composed of ticked values and of a range of numbers or dates, or typed as JSON."""

import json
from typing import Any

from app.contract.datasets import Facts
from app.contract.errors import InvalidRequest
from app.dashboard.controls import MOST_OPTIONS, Control
from app.dashboard.forms import Form
from app.queries.parts.form import Option


def condition_control(facts: Facts, texts: Form) -> Control:
    """The control of a condition: check boxes for values, a range of numbers or dates, JSON."""
    options = [
        Option(f"{i}:{j}", f"{attribute.name} = {value}")
        for i, attribute in enumerate(facts.attributes)
        for j, value in enumerate(attribute.values)
    ]
    ranges = (one.name for one in facts.attributes if one.bounds or one.dates)
    names = ("where.attribute", "where.from", "where.to", "where.json")
    return Control(
        name="where",
        control="where",
        label="Only records where",
        help="Values of one attribute: any of them. Different attributes: all of them.",
        options=tuple(options[:MOST_OPTIONS]),
        values=tuple(texts.all("where.values")),
        weights={**{name: texts.get(name) for name in names}, "ranges": "\n".join(ranges)},
    )


def condition_of(facts: Facts, texts: Form) -> dict[str, Any] | None:
    """The condition in the form's fields, in the API's syntax; None means all records.

    Raises: InvalidRequest.
    """
    if written := texts.get("where.json"):
        # A condition that a user typed is only parsed as JSON here. The model of the query
        # validates it later, exactly as it validates requests to the API.
        whole: dict[str, Any] = _json(written)
        return whole
    ticked: dict[str, list[str]] = {}
    for place in texts.all("where.values"):
        name, value = _named(facts, place)
        ticked.setdefault(name, []).append(value)
    parts: list[dict[str, Any]] = [
        {"attribute": name, "in": values} for name, values in ticked.items()
    ]
    name = texts.get("where.attribute")
    has_dates = any(one.dates for one in facts.attributes if one.name == name)
    bounds = {
        side: text.strip() if has_dates else _json(text)
        for side in ("from", "to")
        if (text := texts.get(f"where.{side}"))
    }
    if bounds:
        parts.append({"attribute": name, **bounds})
    if len(parts) < 2:
        return parts[0] if parts else None
    return {"all": parts}


def _named(facts: Facts, place: str) -> tuple[str, str]:
    first, _, second = place.partition(":")
    try:
        attribute = facts.attributes[int(first)]
        return attribute.name, attribute.values[int(second)]
    except (ValueError, IndexError):
        raise InvalidRequest.at("where", type="value", msg="no such value") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest.at("where", type="json_invalid", msg="not JSON") from None
