"""What docs/trees.md shows works: its queries are valid and its code predicts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import TypeAdapter

from app.engine.requests import QueryRequest
from app.queries import FORMATS
from mechanisms.model.tree_shape import MAX_NODES, check_node
from tests.architecture.imports import ROOT
from tests.unit.app.queries.test_rendering import FOUND, GROWN

TEXT = (ROOT / "docs/trees.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture
def code() -> dict[str, Any]:
    names: dict[str, Any] = {}
    for block in blocks("python"):
        exec(compile(block, "docs/trees.md", "exec"), names)
    return names


def test_the_queries_are_valid() -> None:
    first = blocks("json")[0]
    bodies = [body for body in re.split(r"\n(?=\{)", first.strip()) if body]
    assert len(bodies) == 2
    for body in bodies:
        TypeAdapter(QueryRequest).validate_json(body)


def test_the_nodes_have_the_form_of_answers() -> None:
    forms = [json.loads(line) for line in blocks("json")[1].splitlines()]
    assert len(forms) == 4
    for form in forms:
        check_node(form)


def test_the_code_predicts(code: dict[str, Any]) -> None:
    leaf_of, probabilities = code["leaf_of"], code["probabilities"]
    assert leaf_of(GROWN, {"sex": "m", "age": "[0,50)"})["label"] == "no"
    assert probabilities(leaf_of(GROWN, {"sex": "f"})) == {"yes": 1.0, "no": 0.0}
    assert leaf_of(FOUND, {"age": 50.0})["label"] == "yes"
    assert leaf_of(FOUND, {"age": 49.9, "town": "a"})["label"] == "no"
    assert probabilities({"counts": {"a": {"value": -1}, "b": {"value": 0}}}) == {
        "a": 0.5,
        "b": 0.5,
    }


def test_the_drawing_is_what_is_drawn() -> None:
    assert FORMATS["text"].write({"trees": [GROWN]}) in TEXT


def test_the_limit_is_the_one_in_effect() -> None:
    assert f"{MAX_NODES:,} nodes" in TEXT
