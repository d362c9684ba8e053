"""Builds the form of a query from the query's kind and the public facts about a dataset.

Each control follows from the JSON schema of its parameter, so a new parameter needs no code here.
The submitted form becomes the body that a client would send; the same models validate it.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from app.contract.datasets import Facts
from app.contract.errors import InvalidRequest
from app.dashboard.conditions import condition_control, condition_of
from app.dashboard.controls import Control, plain_control, read_control
from app.dashboard.forms import Form
from app.dashboard.measures import group_control, groups_of, measure_control, measures_of
from app.queries import QUERY_KINDS, Kind
from app.queries.parts.form import FormField, Option


@dataclass(frozen=True)
class Builder:
    """The form of one query: the chosen kind and variant, the alternatives, and the controls."""

    facts: Facts
    kind: Kind
    #: The chosen variant of the query kind: an algorithm, a statistic, or a kind of candidates.
    variant: Option
    kinds: tuple[Kind, ...]
    variants: tuple[Option, ...]
    controls: tuple[Control, ...]

    @property
    def description(self) -> str:
        return _plain(f"{self.kind.body.description} {self.variant.help}")

    @property
    def groups(self) -> dict[str, list[Control]]:
        """The controls that the page folds together, by the title of their group."""
        groups = defaultdict(list)
        for control in self.controls:
            if control.group:
                groups[control.group].append(control)
        return groups

    def query(self, texts: Form) -> dict[str, Any]:
        """The query as a client would write it. Raises: InvalidRequest."""
        query = {"kind": self.kind.name, **self.kind.form.start(self.variant.value)}
        for control in self.controls:
            value = self._value(control, texts)
            if value is None:
                continue
            *path, last = control.name.split(".")
            inner = query
            for step in path:
                inner = inner.setdefault(step, {})
            inner[last] = value
        return query

    def _value(self, control: Control, texts: Form) -> Any:
        if control.control == "where":
            return condition_of(self.facts, texts)
        if control.control == "utilities":
            return _members(texts)
        if control.control == "groups":
            return groups_of(control)
        if control.control == "measures":
            return measures_of(control)
        return read_control(control, texts)


def build(facts: Facts, kind: str, form: str, texts: Form) -> Builder:
    """The form for a dataset. A missing or unsuitable kind or form becomes the first suitable one.

    Raises: InvalidRequest if the dataset supports no kind of query.
    """
    fitting = tuple(one for one in QUERY_KINDS.values() if one.form.fits(facts))
    if not fitting:
        raise InvalidRequest.at("query", "dataset", type="kind", msg="nothing can be asked of it")
    chosen = next((one for one in fitting if one.name == kind), fitting[0])
    variants = chosen.form.variants(facts)
    first = variants[0] if variants else Option("", "")
    variant = next((one for one in variants if one.value == form), first)
    fields = chosen.form.fields(facts, variant.value)
    controls = tuple(_control(one, facts, texts) for one in fields)
    return Builder(facts, chosen, variant, fitting, variants, controls)


def _control(field: FormField, facts: Facts, texts: Form) -> Control:
    match field.widget:
        case "where":
            return condition_control(facts, texts)
        case "utilities":
            return _utility_control(field, texts)
        case "groups":
            return group_control(field, facts, texts)
        case "measures":
            return measure_control(field, texts)
        case "plain":
            return plain_control(field, facts, texts)


def _utility_control(field: FormField, texts: Form) -> Control:
    chosen = tuple(texts.all("utilities")) or (field.options[0].value,)
    return Control(
        name="utilities",
        control="utilities",
        label="Utilities",
        help="What makes a candidate good. Weights count in a weighted sum; negative ones too.",
        required=True,
        options=tuple(Option(one.value, one.title, _plain(one.help)) for one in field.options),
        values=chosen,
        weights={one.value: texts.get(f"weight.{one.value}") for one in field.options},
    )


def _members(texts: Form) -> list[dict[str, Any]]:
    members = []
    for name in texts.all("utilities"):
        member: dict[str, Any] = {"name": name}
        if weight := texts.get(f"weight.{name}"):
            member["weight"] = number(weight, "utilities", name, "weight")
        members.append(member)
    return members


def _plain(text: str) -> str:
    """A text of the catalogue without the backquotes around names."""
    return text.replace("`", "").strip()


def number(text: str, *loc: str) -> int | float:
    """The number in a JSON text. Raises: InvalidRequest at the field ``loc`` for any other text."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidRequest.at(*loc, type="number", msg="a number is required")
    return value
