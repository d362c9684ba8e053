"""The form of a question, made from the catalogue and the public description of a dataset.

A parameter becomes a control by its schema, so a new one appears here by itself; a few take part in
more than their schema says and are written out. What comes back is the body that a client would
send, and is held to the same models.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.contract.catalogue import Catalogue
from app.contract.datasets import Facts
from app.contract.errors import InvalidRequest
from app.dashboard.conditions import condition_control, condition_of
from app.dashboard.controls import Control, Given, Option, plain_control, read_control
from app.queries.clustering import TARGET as CLUSTERING_TARGET
from app.queries.id3_tree import COUNT_TARGET
from app.queries.metric import TARGET as METRIC_TARGET
from app.queries.selection import TARGET as SELECTION_TARGET
from app.queries.statistic import FIELDS as STATISTIC_FIELDS

#: Kinds that are asked of tables alone; the catalogue says it of all others by relation.
OF_TABLES = frozenset({"tree", "distance", "clustering"})
SELECTING = frozenset({"selection", "top_k"})

#: By kind and form: the accuracies that a quote may be asked to reach.
TARGETS: Mapping[str, tuple[str, ...]] = {
    "selection": (SELECTION_TARGET,),
    "top_k": (SELECTION_TARGET,),
    "tree id3": (SELECTION_TARGET, COUNT_TARGET),
    "tree evolutionary": (SELECTION_TARGET,),
    "distance": (METRIC_TARGET,),
    "clustering": (CLUSTERING_TARGET,),
    "statistic": ("error", "rank_error"),
}


@dataclass(frozen=True)
class Builder:
    """One form: what is chosen so far, what else there is to choose, and the fields for it."""

    facts: Facts
    kind: str
    form: str
    kinds: tuple[Option, ...]
    #: What decides on the fields within a kind: the algorithm, the statistic, the candidates.
    forms: tuple[Option, ...]
    form_label: str
    description: str
    controls: tuple[Control, ...] = ()
    targets: tuple[str, ...] = field(default=())

    @property
    def outer(self) -> list[Control]:
        return [one for one in self.controls if not one.name.startswith("distance.")]

    @property
    def nested(self) -> list[Control]:
        """The controls of the metric that a clustering learns."""
        return [one for one in self.controls if one.name.startswith("distance.")]

    def query(self, given: Given) -> dict[str, Any]:
        """The query as a client would write it. Raises: InvalidRequest."""
        query: dict[str, Any] = {"kind": self.kind}
        if self.kind == "tree":
            query["algorithm"] = self.form
        elif self.kind == "statistic":
            query["statistic"] = self.form
        elif self.kind in SELECTING and self.form != "nodes":
            query["candidates"] = {}
        for control in self.controls:
            value = self._value(control, given)
            if value is None:
                continue
            *path, last = control.name.split(".")
            place = query
            for step in path:
                place = place.setdefault(step, {})
            place[last] = value
        return query

    def _value(self, control: Control, given: Given) -> Any:
        if control.name == "where":
            return condition_of(self.facts, given)
        if control.name == "utilities":
            return _members(given)
        return read_control(control, given)


def build(catalogue: Catalogue, facts: Facts, kind: str, form: str, given: Given) -> Builder:
    """The form for a dataset; what is not chosen, or does not fit it, takes the first that fits.

    Raises: InvalidRequest when nothing at all can be asked of the dataset.
    """
    offered = [one for one in catalogue.queries if _fits(one["kind"], catalogue, facts)]
    if not offered:
        raise InvalidRequest.at("query", "dataset", type="kind", msg="nothing can be asked of it")
    chosen = next((one for one in offered if one["kind"] == kind), offered[0])
    label, forms = _forms(chosen, catalogue, facts)
    names = [option.value for option in forms]
    form = form if form in names else (names[0] if names else "")
    controls = tuple(_controls(chosen, form, catalogue, facts, given))
    targets = TARGETS.get(f"{chosen['kind']} {form}", TARGETS.get(chosen["kind"], ()))
    told = next((o.help for o in forms if o.value == form), "")
    return Builder(
        facts=facts,
        kind=chosen["kind"],
        form=form,
        kinds=tuple(Option(one["kind"], one["title"]) for one in offered),
        forms=forms,
        form_label=label,
        description=f"{chosen['description']} {told}".replace("`", "").strip(),
        controls=controls,
        targets=targets,
    )


def _fits(kind: str, catalogue: Catalogue, facts: Facts) -> bool:
    if kind in OF_TABLES:
        return facts.kind == "table"
    return bool(_forms({"kind": kind}, catalogue, facts)[1])


def _forms(
    chosen: Mapping[str, Any], catalogue: Catalogue, facts: Facts
) -> tuple[str, tuple[Option, ...]]:
    kind = chosen["kind"]
    if kind == "tree":
        algorithms = chosen["algorithms"]
        found = [Option(one["name"], one["title"], one["description"]) for one in algorithms]
        return "Algorithm", tuple(found)
    if kind == "statistic":
        numbers = any(one.bounds is not None for one in facts.attributes)
        fitting = [
            one
            for one in catalogue.statistics
            if _mechanisms(one, facts)
            and (numbers or "attribute" not in STATISTIC_FIELDS[one["name"]])
        ]
        found = [Option(one["name"], one["title"], one["description"]) for one in fitting]
        return "Statistic", tuple(found)
    if kind in SELECTING:
        fitting = [one for one in catalogue.candidates if _utilities(one["kind"], catalogue, facts)]
        found = [Option(one["kind"], one["kind"], one["description"]) for one in fitting]
        return "Candidates", tuple(found)
    return "", ()


def _mechanisms(statistic: Mapping[str, Any], facts: Facts) -> list[dict[str, Any]]:
    return [one for one in statistic["mechanisms"] if facts.neighbouring in one["neighbouring"]]


def _utilities(kind: str, catalogue: Catalogue, facts: Facts) -> list[dict[str, Any]]:
    return [
        one
        for one in catalogue.utilities
        if one["candidates"] == kind and facts.neighbouring in one["neighbouring"]
    ]


def _controls(
    chosen: Mapping[str, Any], form: str, catalogue: Catalogue, facts: Facts, given: Given
) -> Iterator[Control]:
    kind, definitions = chosen["kind"], chosen["definitions"]
    required = set(chosen["required"])
    for algorithm in chosen.get("algorithms", ()):
        if algorithm["name"] == form:
            required |= set(algorithm["required"])
    if kind in SELECTING:
        candidate = next(one for one in catalogue.candidates if one["kind"] == form)
        for name, schema in candidate["parameters"].items():
            if name != "nodes":
                path = f"candidates.{name}"
                needed = name in candidate["required"]
                yield plain_control(path, schema, needed, definitions, facts, given)
        utilities = _utilities(form, catalogue, facts)
        yield _utility_control(utilities, given)
    for name, schema in chosen["parameters"].items():
        schema = schema.get("by_algorithm", {}).get(form, schema)
        if name in ("algorithm", "statistic", "candidates", "utilities"):
            continue
        if form and form not in schema.get("algorithms", [form]):
            continue
        if kind == "statistic" and name in ("attribute", "quantile", "k", "where"):
            if name not in STATISTIC_FIELDS[form]:
                continue
            if name == "where":
                yield condition_control(facts, given)
                continue
            required.add(name)
        if kind == "statistic" and name == "mechanism":
            statistic = next(one for one in catalogue.statistics if one["name"] == form)
            schema = {**schema, "enum": [one["name"] for one in _mechanisms(statistic, facts)]}
        if name == "distance":
            yield from _nested(name, schema, definitions, facts, given)
            continue
        yield plain_control(name, schema, name in required, definitions, facts, given)


def _nested(
    name: str, schema: Mapping[str, Any], definitions: Mapping[str, Any], facts: Facts, given: Given
) -> Iterator[Control]:
    """The controls of an object inside the query, each by its own name."""
    inner = definitions[schema["$ref"].rpartition("/")[2]]
    for part, form in inner["properties"].items():
        yield plain_control(f"{name}.{part}", form, False, definitions, facts, given)


def _utility_control(utilities: Sequence[Mapping[str, Any]], given: Given) -> Control:
    options = tuple(
        Option(one["name"], one["title"], one["description"].replace("`", "")) for one in utilities
    )
    chosen = tuple(given.all("utilities")) or (options[0].value,)
    return Control(
        name="utilities",
        control="utilities",
        label="Utilities",
        help="What makes a candidate good. Weights count in a weighted sum; negative ones too.",
        required=True,
        options=options,
        values=chosen,
        weights={one.value: given.get(f"weight.{one.value}") for one in options},
    )


def _members(given: Given) -> list[dict[str, Any]]:
    members = []
    for name in given.all("utilities"):
        member: dict[str, Any] = {"name": name}
        if weight := given.get(f"weight.{name}"):
            member["weight"] = number(weight, "utilities", name, "weight")
        members.append(member)
    return members


def number(text: str, *loc: str) -> int | float:
    """A JSON number. Raises: InvalidRequest."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidRequest.at(*loc, type="number", msg="a number is required")
    return value
