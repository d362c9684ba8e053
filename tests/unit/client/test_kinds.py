"""The client has every field of every kind of query, and its problems are those of the service."""

from __future__ import annotations

import json
import re
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from app.contract.problems import BY_SLUG
from app.engine.requests import QueryRequest
from app.queries.clustering.body import Clustering
from app.queries.distance.body import Distance
from app.queries.parts.metric import MetricOptions
from app.queries.selection.body import Selection
from app.queries.statistic.body import StatisticQuery
from app.queries.top_k.body import TopK
from app.queries.tree.evolutionary import EvolutionaryTree
from app.queries.tree.id3 import Id3Tree
from privypurse import clustering, distance, kinds, selection, statistic, top_k, tree
from privypurse.amounts import Amount, decimal_text
from privypurse.problems import PROBLEMS

#: Options in the client, models of the service, and the fields that are arguments of the call.
FIELDS: list[tuple[Any, list[Any], set[str]]] = [
    (kinds.SelectionOptions, [Selection], {"kind", "utilities"}),
    (kinds.TopKOptions, [TopK], {"kind", "k", "utilities"}),
    (kinds.TreeOptions, [Id3Tree, EvolutionaryTree], {"kind", "algorithm"}),
    (kinds.MetricOptions, [MetricOptions], set()),
    (kinds.DistanceOptions, [Distance], {"kind", "target"}),
    (kinds.ClusteringOptions, [Clustering], {"kind", "clusters"}),
    (kinds.StatisticOptions, [StatisticQuery], {"kind", "statistic"}),
]


@pytest.mark.parametrize("options, models, arguments", FIELDS)
def test_options_are_the_fields_of_the_service(
    options: Any, models: list[Any], arguments: set[str]
) -> None:
    fields = set().union(*(model.model_fields for model in models))
    assert set(get_type_hints(options)) == fields - arguments


@pytest.mark.parametrize("options, models, arguments", FIELDS)
def test_named_choices_are_those_of_the_service(
    options: Any, models: list[Any], arguments: set[str]
) -> None:
    del arguments
    for name, hint in get_type_hints(options).items():
        offered = {text for text in get_args(hint) if isinstance(text, str)}
        if offered:
            properties = [m.model_json_schema()["properties"].get(name) for m in models]
            definitions = [m.model_json_schema().get("$defs", {}) for m in models]
            accepted = set().union(
                *(_enumerated(p, d) for p, d in zip(properties, definitions, strict=True) if p)
            )
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
        distance("town", context="baseline", selection_rule="max_relevance", embedding=True),
        distance(),
        clustering(3, distance={"context_size": 2}, initial_centres=[{"a": "b"}] * 3),
        statistic("triangles", mechanism="ladder", delta=1e-7),
        statistic("count", where={"attribute": "town", "in": ["a"]}),
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
