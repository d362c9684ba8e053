"""``?format=``: an answered tree as text or picture, for its analyst only."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.service import Service
from tests.unit.app.queries.test_trees import ID3, SEARCH, ask, registered

TYPES = {
    "text": "text/plain; charset=utf-8",
    "dot": "text/vnd.graphviz; charset=utf-8",
    "svg": "image/svg+xml",
}


@pytest.fixture
def stored_tree(people: Service) -> tuple[Service, dict[str, Any]]:
    registered(people, "add_remove")
    reply = ask(people, **ID3, max_depth=2)
    assert reply.status_code == 201, reply.text
    return people, reply.json()


@pytest.mark.parametrize("name", TYPES)
def test_the_analyst_reads_the_tree(stored_tree: tuple[Service, dict[str, Any]], name: str) -> None:
    service, answer = stored_tree
    path = f"/v1/queries/{answer['id']}"
    for headers in ({}, {"Accept": TYPES[name].partition(";")[0]}, {"Accept": "*/*"}):
        reply = service("ana", "GET", f"{path}?format={name}", headers=headers)
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"] == TYPES[name]
        assert "sex" in reply.text
        assert reply.headers["x-content-type-options"] == "nosniff"
    if name == "svg":
        ElementTree.fromstring(reply.text)
    assert service("ana", "GET", f"{path}?format=json").json() == answer
    assert service("ana", "GET", path).json() == answer


def test_trees_of_the_search_are_written_too(people: Service) -> None:
    registered(people, "add_remove")
    id_ = ask(people, **SEARCH, outputs=2).json()["id"]
    written = people("ana", "GET", f"/v1/queries/{id_}?format=text").text
    assert "tree 1\n" in written
    assert "tree 2\n" in written


def test_a_naive_bayes_model_is_written_too(people: Service) -> None:
    registered(people, "add_remove", minimum_count=5)
    answer = ask(people, epsilon="50", kind="tree", algorithm="naive_bayes").json()
    model = answer["answer"]["model"]
    assert model["classes"] == ["yes", "no"]
    # Only women are paid, so the count of paid men is small and suppressed. The count of paid women
    # is suppressed too, because the other would follow from it and the class total.
    women, men = model["attributes"]["sex"]["counts"][0]
    assert (women["suppressed"], men["suppressed"], men["value"]) == (True, True, None)
    assert abs(model["attributes"]["sex"]["counts"][1][1]["value"] - 450) < 5
    assert model["attributes"]["sex"]["values"] == ["f", "m"]
    written = {
        name: people("ana", "GET", f"/v1/queries/{answer['id']}?format={name}").text
        for name in TYPES
    }
    assert "│   f: yes suppressed, no " in written["text"]
    assert "n0 -> n1" in written["dot"]
    ElementTree.fromstring(written["svg"])
    assert "suppressed" in written["svg"]


def test_others_have_no_answer_to_look_at(stored_tree: tuple[Service, dict[str, Any]]) -> None:
    service, answer = stored_tree
    path = f"/v1/queries/{answer['id']}?format=text"
    for who in ("olga", "otto"):
        reply = service(who, "GET", path)
        assert reply.status_code == 406
        assert "sex" not in reply.text
    service.user("ben", "analyst")
    assert service("ben", "GET", path).status_code == 404


def test_what_is_no_tree_is_unsupported(stored_tree: tuple[Service, dict[str, Any]]) -> None:
    service, _ = stored_tree
    query = {
        "kind": "selection",
        "candidates": {"values_of": "town"},
        "utilities": [{"name": "count"}],
    }
    id_ = ask(service, **query).json()["id"]
    reply = service("ana", "GET", f"/v1/queries/{id_}?format=svg")
    assert reply.status_code == 422
    assert reply.json()["type"].endswith("unsupported-query")
    assert reply.json()["supported"] == {"format": ["json"]}


def test_formats_are_those_of_the_contract(stored_tree: tuple[Service, dict[str, Any]]) -> None:
    service, answer = stored_tree
    path = f"/v1/queries/{answer['id']}"
    assert service("ana", "GET", f"{path}?format=png").status_code == 422
    for format_, accept in (("svg", "application/json"), ("json", "image/svg+xml"), ("", "text/*")):
        query = f"?format={format_}" if format_ else ""
        reply = service("ana", "GET", path + query, headers={"Accept": accept})
        assert reply.status_code == 406
