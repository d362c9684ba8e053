"""The client has every field of every kind of query, and its problems are those of the service."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from pydantic import TypeAdapter

from app.contract.problems import BY_SLUG
from app.engine.requests import QueryRequest
from app.queries import QUERY_KINDS, Kind
from privypurse import PrivyPurse, clustering, distance, selection, statistic, table, top_k, tree
from privypurse.amounts import Amount, decimal_text, loss
from privypurse.kinds.metric import MetricOptions
from privypurse.problems import PROBLEMS

EACH = pytest.mark.parametrize("kind", QUERY_KINDS.values(), ids=lambda kind: kind.name)
#: The arguments of the client's methods that have another name than the field of the request, with
#: the name of that field.
FIELD_OF = {"name": "statistic"}


def module_of(kind: Kind) -> ModuleType:
    """The file of the client that mirrors a kind."""
    return importlib.import_module(f"privypurse.kinds.{kind.name}")


def schemas_of(kind: Kind) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """By field the schemas that the bodies of the kind give it, and the definitions they name."""
    schema = TypeAdapter(kind.model or kind.body).json_schema()
    definitions = schema.get("$defs", {})
    choices = schema.get("oneOf", schema.get("anyOf"))
    bodies = [schema] if choices is None else [_definition(one, definitions) for one in choices]
    fields: dict[str, list[Any]] = {}
    for body in bodies:
        for name, form in body["properties"].items():
            if name != "kind":
                fields.setdefault(name, []).append(form)
    return fields, definitions


def _definition(form: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = definitions[form["$ref"].rpartition("/")[2]]
    return result


def test_every_kind_has_its_file_and_no_other_has() -> None:
    folder = Path(importlib.import_module("privypurse.kinds").__path__[0])
    shared = {"__init__", "query", "metric"}
    assert {path.stem for path in folder.glob("*.py")} - shared == QUERY_KINDS.keys()


@EACH
def test_arguments_are_those_of_the_kind_with_the_defaults_of_the_service(kind: Kind) -> None:
    fields, _ = schemas_of(kind)
    required = set(kind.body.catalogue()["required"])
    parameters = inspect.signature(getattr(module_of(kind), kind.name)).parameters
    named = [one for one in parameters.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    assert tuple(FIELD_OF.get(one.name, one.name) for one in named) == kind.arguments
    for one in named:
        field = FIELD_OF.get(one.name, one.name)
        assert (one.default is one.empty) == (field in required)
        if one.default is not one.empty:
            default = list(one.default) if isinstance(one.default, tuple) else one.default
            assert default in [form.get("default") for form in fields[field]]
    # A field of the request that is no positional argument of the client's method may be left out,
    # so the service must not require it.
    assert required <= {*kind.arguments}


@EACH
def test_a_call_takes_what_its_query_takes(kind: Kind) -> None:
    query = inspect.signature(getattr(module_of(kind), kind.name)).parameters
    call = inspect.signature(getattr(PrivyPurse, kind.name)).parameters
    assert ("rho" in call) == kind.body.gaussian
    own = [name for name in call if name not in ("self", "dataset", "epsilon", "rho", "key")]
    assert own == list(query)
    assert list(call)[:2] == ["self", "dataset"]
    assert [call[name] for name in own] == [query[name] for name in own]


def test_a_query_names_one_amount() -> None:
    assert loss("0.5", None) == {"epsilon": "0.5"}
    assert loss(None, 0.25) == {"rho": "0.25"}
    for amounts in ((None, None), (1, 1)):
        with pytest.raises(ValueError, match="either epsilon or rho"):
            loss(*amounts)
    charge = Amount.of({"epsilon": None, "delta": "0", "rho": "0.05"})
    assert not charge.epsilon.is_finite()
    assert str(charge) == "ρ = 0.05"


@EACH
def test_options_are_the_fields_of_the_service(kind: Kind) -> None:
    fields, _ = schemas_of(kind)
    assert set(get_type_hints(module_of(kind).Options)) == fields.keys() - {*kind.arguments}


@EACH
def test_named_choices_are_those_of_the_service(kind: Kind) -> None:
    fields, definitions = schemas_of(kind)
    for name, hint in get_type_hints(module_of(kind).Options).items():
        compare(name, hint, fields[name], definitions)
    function = getattr(module_of(kind), kind.name)
    hints = get_type_hints(function)
    for name in inspect.signature(function).parameters:
        if name != "options":
            field = FIELD_OF.get(name, name)
            compare(name, hints[name], fields[field], definitions)


def test_the_options_of_a_metric_are_those_of_the_service() -> None:
    fields, definitions = schemas_of(QUERY_KINDS["clustering"])
    (form,) = fields["distance"]
    properties = _definition(form, definitions)["properties"]
    hints = get_type_hints(MetricOptions)
    assert hints.keys() == properties.keys()
    for name, hint in hints.items():
        compare(name, hint, [properties[name]], definitions)


def compare(name: str, hint: Any, forms: list[Any], definitions: dict[str, Any]) -> None:
    """The texts of a Literal are exactly those that the service takes."""
    offered = {text for text in get_args(hint) if isinstance(text, str)}
    if offered:
        accepted = set().union(*(_enumerated(form, definitions) for form in forms))
        assert offered == accepted, name


def _enumerated(form: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    if "$ref" in form:
        return _enumerated(definitions[form["$ref"].rpartition("/")[2]], definitions)
    inner = [*form.get("anyOf", []), *form.get("allOf", [])]
    own = {*form.get("enum", []), *([form["const"]] if "const" in form else [])}
    return own.union(*(_enumerated(one, definitions) for one in inner)) if inner else own


def test_bodies_are_valid() -> None:
    queries = [
        selection("degree", sensitivity="local"),
        top_k(2, ["degree", {"name": "egocentric_density", "weight": 2.0}], draws="one_shot",
              objective="weighted_sum"),
        tree(max_depth=3, criterion="max"),
        tree("evolutionary", positive_class="yes", weights={"true_positive_rate": 2}),
        tree("forest", trees=4, splits="private"),
        tree("naive_bayes", attributes=["town"]),
        distance("town", context="baseline", selection_rule="max_relevance", embedding=True),
        distance(),
        clustering(3, distance={"context_size": 2}, initial_centres=[{"a": "b"}] * 3),
        statistic("triangles", mechanism="ladder", delta=1e-7),
        statistic("count", where={"attribute": "town", "in": ["a"]}),
        table(),
        table(["town", {"attribute": "age", "edges": [0, 18.5, 90]}], non_negative=True,
              aggregates=[{"name": "count"}, {"name": "mean", "attribute": "age", "share": 0.25}],
              totals={"measured": [["town"], []], "share": "0.1"}),
    ]  # fmt: skip
    for query in queries:
        body = {"dataset": "d", "epsilon": "1", "query": query.body}
        QueryRequest.model_validate_json(json.dumps(body))


def test_amounts_are_exact() -> None:
    assert decimal_text(0.1) == "0.1"
    assert decimal_text(np.float64(0.1)) == "0.1"
    assert decimal_text(1e-9) == "0.000000001"
    assert decimal_text("1e-6") == "0.000001"
    assert decimal_text(2) == "2"
    for wrong in (True, "a", ""):
        with pytest.raises(ValueError):
            decimal_text(wrong)
    assert str(Amount.of({"epsilon": "0.5", "delta": "0"})) == "ε = 0.5"
    assert str(Amount.of({"epsilon": "0.5", "delta": "0.000001"})) == "ε = 0.5, δ = 0.000001"


def test_every_problem_is_one_of_the_service_with_its_status() -> None:
    assert set(PROBLEMS) <= set(BY_SLUG)
    for slug, kind in PROBLEMS.items():
        status = re.match(r"\d{3}", kind.__doc__ or "")
        assert status is not None
        assert int(status[0]) == BY_SLUG[slug].status
