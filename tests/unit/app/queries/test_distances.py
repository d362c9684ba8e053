"""Queries of distances between values and of clusterings, as they are sent over HTTP.

Every method answers, also on degenerate data such as an empty table, and what is refused is free.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from decimal import Decimal
from itertools import product
from typing import Any

import httpx
import numpy as np
import pytest

from tests.support.service import Service

LEVELS = {"sky": ["sun", "rain", "fog"], "coat": ["yes", "no"], "mood": ["low", "high"]}
TABLE: dict[str, Any] = {
    "name": "weather",
    "kind": "table",
    "attributes": [
        *(
            {"name": name, "kind": "categorical", "values": values}
            for name, values in LEVELS.items()
        ),
        {"name": "heat", "kind": "numeric", "bounds": [0, 40], "bins": 4, "missing": "?"},
        {"name": "same", "kind": "categorical", "values": ["only"]},
        {"name": "kind", "kind": "categorical", "values": ["a", "b"]},
    ],
    "class_attribute": "kind",
    "cap": {"epsilon": "1000000000", "delta": "0"},
}
TAKING_PART = ["sky", "coat", "mood", "heat", "same"]
RELATIONS: dict[str, dict[str, Any]] = {
    "replace": {"neighbouring": "replace"},
    "add_remove": {"neighbouring": "add_remove", "max_rows": 1000, "min_rows": 100},
}


def rows(count: int) -> bytes:
    """Rows in which the coat depends on the sky, fog never occurs, and mood gives the class."""
    lines = ["sky,coat,mood,heat,same,kind"]
    for i in range(count):
        wet, low = i % 2, i % 3 == 0
        heat = "?" if i % 7 == 0 else str(i % 40)
        lines.append(
            f"{'rain' if wet else 'sun'},{'yes' if wet else 'no'},"
            f"{'low' if low else 'high'},{heat},only,{'a' if low else 'b'}"
        )
    return ("\n".join(lines) + "\n").encode()


def register(service: Service, relation: str, count: int = 300, **changes: Any) -> Service:
    body = {**TABLE, **RELATIONS[relation], **changes}
    reply = service("olga", "POST", "/v1/datasets", json=body)
    assert reply.status_code == 201, reply.text
    reply = service.upload("olga", body["name"], rows(count))
    assert reply.status_code == 201, reply.text
    service.grant("olga", str(body["name"]), "ana", "1000000000")
    return service


Start = Callable[[], AbstractContextManager[Service]]


@pytest.fixture(scope="module", params=list(RELATIONS))
def table(shared: Start, request: pytest.FixtureRequest) -> Iterator[Service]:
    with shared() as people:
        yield register(people, request.param)


@pytest.fixture(scope="module")
def untouched(shared: Start) -> Iterator[Service]:
    """A table of which every query is refused."""
    with shared() as people:
        yield register(people, "replace", 20)


def ask(service: Service, epsilon: Any = 100, **query: Any) -> httpx.Response:
    body = {"dataset": "weather", "epsilon": epsilon, "query": {"kind": "distance", **query}}
    headers = {"Content-Type": "application/json"}
    return service("ana", "POST", "/v1/queries", content=json.dumps(body), headers=headers)


def answer(reply: httpx.Response) -> Any:
    """Returns the answer; checks that the steps add up exactly to the charge."""
    assert reply.status_code == 201, reply.text
    body = reply.json()
    total = sum(Decimal(step["epsilon"]) * step["times"] for step in body["steps"])
    assert total == Decimal(body["charge"]["epsilon"])
    return body["answer"]


def checked(distances: dict[str, Any], targets: list[str]) -> None:
    """Matrices are symmetric, with a zero diagonal, in [0, 1]; contexts are not empty."""
    assert list(distances) == targets
    for name, distance in distances.items():
        matrix = np.array(distance["matrix"])
        assert matrix.shape == (len(distance["values"]),) * 2
        assert (matrix == matrix.T).all()
        assert (matrix.diagonal() == 0).all()
        assert ((matrix >= 0) & (matrix <= 1)).all()
        assert distance["context"]
        assert name not in distance["context"]
        assert len(set(distance["context"])) == len(distance["context"])


CONTEXTS = [
    {"context": "mean_su"},
    {"context": "max_relevance", "context_size": 2},
    {"context": "max_dependency", "context_size": 2},
    *({"context": "baseline", "selection_rule": rule}
      for rule in ("mean_su", "not_redundant", "max_relevance", "max_dependency")),
    {"context": "baseline", "threshold": 0.5},
]  # fmt: skip


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda c: "-".join(map(str, c.values())))
def test_every_way_to_learn(table: Service, context: Any) -> None:
    for sensitivity, target, (selector, epsilon) in product(
        ("global", "local"), (None, "sky", "kind"), (("permute_and_flip", 0.1), ("exponential", 99))
    ):
        query = {**context, "sensitivity": sensitivity, "target": target, "embedding": True}
        distances = answer(ask(table, epsilon, **query, selector=selector))["distances"]
        checked(distances, TAKING_PART if target is None else [target])
        for one in distances.values():
            points = np.array(one["embedding"])
            apart = np.linalg.norm(points[:, None] - points, axis=2)
            assert np.allclose(apart, one["matrix"], atol=1e-12)


@pytest.mark.parametrize("context", CONTEXTS[:6], ids=lambda c: "-".join(map(str, c.values())))
@pytest.mark.parametrize("sensitivity", ["global", "local"])
def test_with_much_epsilon_the_truth_comes_back(
    table: Service, context: Any, sensitivity: str
) -> None:
    """The coat determines rain or sun, so it is in the context and the distance is large."""
    reply = ask(table, 10**6, target="sky", sensitivity=sensitivity, **context)
    distance = answer(reply)["distances"]["sky"]
    assert "coat" in distance["context"]
    assert distance["values"] == LEVELS["sky"]
    matrix = np.array(distance["matrix"])
    assert matrix[0, 1] > 0.4
    sizes = {"sky": 3, "coat": 2, "mood": 2, "heat": 5, "same": 1}
    # All rows with sun have one coat and all rows with rain the other, so the shares of both coats
    # differ by 1. This difference alone makes the distance at least as large as this bound.
    assert matrix[0, 1] >= math.sqrt(2 / sum(sizes[name] for name in distance["context"])) - 0.01


def test_who_takes_part(table: Service) -> None:
    distances = answer(ask(table, attributes=["sky", "kind", "mood"], context_size=1))["distances"]
    checked(distances, ["sky", "mood", "kind"])
    distances = answer(ask(table, attributes=["sky", "mood"], target="kind"))["distances"]
    assert set(distances["kind"]["context"]) <= {"sky", "mood"}


def test_a_context_of_all_others_is_not_paid_for(table: Service) -> None:
    for context in ("max_relevance", "max_dependency"):
        reply = ask(table, 1, target="sky", context=context, context_size=4)
        distance = answer(reply)["distances"]["sky"]
        assert distance["context"] == ["coat", "mood", "heat", "same"]
        assert len(reply.json()["steps"]) == 1


def test_the_whole_metric_takes_the_less_noisy_way(table: Service) -> None:
    """(1 − h)·C(5, 2) = 7 tables at h = 0.3: with k = 1 contexts first need 5 at most."""
    first = ask(table, 1, context="max_relevance", context_size=1)
    steps = first.json()["steps"]
    answer(first)
    assert [step["epsilon"] for step in steps] == ["0.06", "0.7"]
    assert steps[0]["times"] == 5
    second = ask(table, 1, context="max_relevance", context_size=2)
    (step,) = second.json()["steps"]
    assert "baseline" in step["what"]
    assert step["epsilon"] == "1"
    checked(answer(second)["distances"], TAKING_PART)
    assert all(len(d["context"]) == 2 for d in answer(second)["distances"].values())


def test_odd_shares_lose_no_nano(table: Service) -> None:
    for epsilon, share in (
        ("0.000777777", 0.3),
        ("1", 1e-7),
        ("1", 0.9999999),
        ("3.000000001", 0.5),
    ):
        for target, context in product((None, "mood"), ("max_relevance", "max_dependency")):
            reply = ask(
                table, epsilon, target=target, context=context, context_size=1, context_share=share
            )
            answer(reply)


@pytest.mark.parametrize("epsilon", ["0.000001", "1000000"])
@pytest.mark.parametrize(
    "share", [1e-12, pytest.param(0.3, marks=pytest.mark.slow), 0.999999999999]
)
@pytest.mark.long
def test_extreme_amounts_are_right_or_refused(table: Service, epsilon: str, share: float) -> None:
    for context, target, mode in product(CONTEXTS, (None, "sky"), ("global", "local")):
        reply = ask(table, epsilon, target=target, context_share=share, sensitivity=mode, **context)
        assert reply.status_code in (201, 422), reply.text
        if reply.status_code == 201:
            checked(answer(reply)["distances"], TAKING_PART if target is None else ["sky"])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.long
def test_hardly_any_record(people: Service, relation: str, count: int) -> None:
    least = {"min_rows": 1} if relation == "add_remove" else {}
    table = register(people, relation, count, **least)
    for context, target in product(CONTEXTS, (None, "sky", "same")):
        for sensitivity in ("global", "local"):
            reply = ask(table, 1, target=target, sensitivity=sensitivity, **context)
            checked(answer(reply)["distances"], TAKING_PART if target is None else [target])
    reply = cluster(table, clusters=2)
    assert reply.status_code == 201, reply.text


def test_no_record_at_all(people: Service) -> None:
    table = register(people, "add_remove", 0, min_rows=0)
    for context in CONTEXTS[1:]:
        for target in (None, "sky"):
            checked(
                answer(ask(table, 1, target=target, **context))["distances"],
                TAKING_PART if target is None else [target],
            )
    assert cluster(table, clusters=3).status_code == 201


@pytest.mark.parametrize("least", [{}, {"min_rows": 0}, {"min_rows": 1}])
def test_mean_su_needs_a_public_lower_bound_on_rows(people: Service, least: dict[str, int]) -> None:
    """For one target, for all targets with the baseline, and for a clustering."""
    relation = {"neighbouring": "add_remove", "max_rows": 1000, "min_rows": None, **least}
    table = register(people, "add_remove", 20, **relation)
    status = 201 if least.get("min_rows") else 422
    for query in ({"target": "sky"}, {"target": None}, {"attributes": ["sky", "mood"]}):
        reply = ask(table, 1, context="mean_su", **query)
        assert reply.status_code == status, reply.text
        if status == 422:
            assert reply.json()["type"].endswith("unsupported-query")
            assert "min_rows" in reply.text
    assert cluster(table, clusters=2, distance={"context": "mean_su"}).status_code == status
    # The selection rule mean_su of the baseline reads noisy tables. It needs no public lower bound
    # on the number of rows.
    assert ask(table, 1, context="baseline", selection_rule="mean_su").status_code == 201
    spent = table("ana", "GET", "/v1/budgets").json()["items"][0]["spent"]["epsilon"]
    assert spent == ("14" if status == 201 else "1")


@pytest.mark.parametrize(
    "query",
    [
        {"target": "shoe"}, {"target": 3}, {"context": "dilca"}, {"context": None},
        {"context_size": 0}, {"context_size": 5}, {"context_size": 2.0}, {"context_size": "3"},
        {"context_share": 0}, {"context_share": 1}, {"context_share": -0.1}, {"context_share": 2},
        {"context_share": float("nan")}, {"context_share": True},
        {"sensitivity": "shifted"}, {"sensitivity": "flattened"}, {"selector": "race"},
        {"selection_rule": "mean_su"}, {"threshold": 0.5},
        {"context": "baseline", "selection_rule": "best"},
        {"context": "baseline", "threshold": 2}, {"context": "baseline", "threshold": -1},
        {"context": "baseline", "selection_rule": "not_redundant", "threshold": 1},
        {"context": "baseline", "selection_rule": "max_relevance", "context_size": 5},
        {"attributes": []}, {"attributes": ["sky"]}, {"attributes": ["sky", "sky"]},
        {"attributes": ["sky", "shoe"]}, {"attributes": ["sky"], "target": "sky"},
        {"embedding": 1}, {"labels": True}, {"k": 3},
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_for_free(untouched: Service, query: dict[str, Any]) -> None:
    assert ask(untouched, **query).status_code == 422
    assert untouched.spent() == "0"


def test_one_attribute_has_no_context(people: Service) -> None:
    attribute = {"name": "sky", "kind": "categorical", "values": ["sun", "rain"]}
    body = {**TABLE, **RELATIONS["replace"], "attributes": [attribute]}
    del body["class_attribute"]
    assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
    assert people.upload("olga", "weather", b"sky\nsun\nrain\n").status_code == 201
    people.grant("olga", "weather", "ana", "10")
    for query in ({}, {"target": "sky"}, {"context": "mean_su"}, {"context": "baseline"}):
        reply = ask(people, 1, **query)
        assert reply.status_code == 422
        assert reply.json()["type"].endswith("unsupported-query")
    assert cluster(people, 1, clusters=2).status_code == 422
    assert cluster(people, 1, clusters=2, encoding="one_hot").status_code == 201
    assert cluster(people, 1, clusters=3, encoding="one_hot").status_code == 422


def test_graphs_have_no_distances(people: Service) -> None:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    for query in ({"kind": "distance"}, {"kind": "clustering", "clusters": 2}):
        body = {"dataset": "triangle", "epsilon": 0.1, "query": query}
        reply = people("ana", "POST", "/v1/queries", json=body)
        assert reply.status_code == 422
        assert reply.json()["type"].endswith("unsupported-query")


def test_quotes_say_what_public_facts_predict(table: Service) -> None:
    def quote(**body: Any) -> Any:
        reply = table("ana", "POST", "/v1/quotes", json={"dataset": "weather", **body})
        return reply.json()

    query = {"kind": "distance", "target": "sky", "context": "max_dependency", "context_size": 2}
    replace = table("ana", "GET", "/v1/datasets/weather").json()["neighbouring"] == "replace"
    quoted = quote(epsilon="1", query=query)
    assert quoted["accuracy"]["tables_at_most"] == 2
    scale = (4 if replace else 2) / 0.7
    assert quoted["accuracy"]["cell_noise_scale"] == pytest.approx(scale, rel=1e-3)
    assert quoted["accuracy"]["score_below_best"] > 0
    target = quote(target={"cell_noise_scale": scale}, query=query)
    assert Decimal(target["charge"]["epsilon"]) == pytest.approx(Decimal(1), abs=Decimal("1e-8"))
    for bad in ({"cell_noise_scale": 0}, {"cell_noise_scale": 1e-300}, {"score": 1}):
        assert quote(target=bad, query=query)["status"] == 422
    su = quote(epsilon="1", query={"kind": "distance", "target": "sky", "context": "mean_su"})
    assert su["accuracy"]["entropy_noise_scale"] > 0
    grouped = quote(epsilon="1", query={"kind": "clustering", "clusters": 3, "iterations": 4})
    assert grouped["accuracy"]["count_noise_scale"] > 4
    assert grouped["accuracy"]["distance"]["cell_noise_scale"] > 0
    reached = quote(
        target={"count_noise_scale": 5},
        query={"kind": "clustering", "clusters": 3, "encoding": "one_hot", "starts": 1},
    )
    # A noise scale of 5 for six releases on 5 attributes needs ε = 6·(1 + 5)/5 under add/remove,
    # and twice that under replace.
    needed = 14.4 if replace else 7.2
    assert float(reached["charge"]["epsilon"]) == pytest.approx(needed, rel=1e-6)
    for noise in (0.5, 5, 50):
        # By default a larger ε is divided among more starts of the clustering, so each start gets a
        # smaller share. The target must be reached nevertheless.
        several = {"kind": "clustering", "clusters": 3, "encoding": "one_hot"}
        least = quote(target={"count_noise_scale": noise}, query=several)
        assert least["accuracy"]["count_noise_scale"] <= noise * 1.001
        assert least["accuracy"]["starts"] >= 1


def cluster(service: Service, epsilon: Any = 10, **query: Any) -> httpx.Response:
    body = {"dataset": "weather", "epsilon": epsilon, "query": {"kind": "clustering", **query}}
    headers = {"Content-Type": "application/json"}
    return service("ana", "POST", "/v1/queries", content=json.dumps(body), headers=headers)


@pytest.mark.parametrize("encoding", ["learned_distance", "one_hot"])
def test_clusters_come_with_what_assigns_records(table: Service, encoding: str) -> None:
    rest = {"mood": "low", "heat": "?", "same": "only"}
    initial = [{"sky": "sun", "coat": "no", **rest}, {"sky": "rain", "coat": "yes", **rest}]
    reply = cluster(
        table, 10**5, clusters=2, encoding=encoding, iterations=10, initial_centres=initial
    )
    result = answer(reply)
    assert result["encoding"]["kind"] == encoding
    attributes = result["encoding"]["attributes"]
    assert [a["name"] for a in attributes] == TAKING_PART
    centres = np.array(result["centres"])
    assert centres.shape == (2, sum(len(a["vectors"][0]) for a in attributes))

    def nearest(**record: str) -> int:
        vectors = (a["vectors"][a["values"].index(record[a["name"]])] for a in attributes)
        point = np.concatenate([np.array(vector) for vector in vectors])
        return int(np.linalg.norm(centres - point, axis=1).argmin())

    rest = {"mood": "high", "heat": "[10,20)", "same": "only"}
    assert nearest(sky="sun", coat="no", **rest) == 0
    assert nearest(sky="rain", coat="yes", **rest) == 1


@pytest.mark.parametrize("context", CONTEXTS, ids=lambda c: "-".join(map(str, c.values())))
@pytest.mark.long
def test_every_metric_encodes_a_clustering(table: Service, context: Any) -> None:
    for epsilon, sensitivity in product(("0.000001", "0.1", "1000000"), ("global", "local")):
        distance = {**context, "sensitivity": sensitivity}
        reply = cluster(
            table, epsilon, clusters=4, distance=distance, distance_share=0.7, iterations=3
        )
        if epsilon == "0.000001" and reply.status_code == 422:
            continue
        assert np.isfinite(np.array(answer(reply)["centres"])).all()


@pytest.mark.parametrize(
    "query",
    [
        {}, {"clusters": 0}, {"clusters": 1001}, {"clusters": 61}, {"clusters": 2.0},
        {"clusters": 2, "iterations": 0}, {"clusters": 2, "iterations": 10**6},
        {"clusters": 2, "encoding": "labels"}, {"clusters": 2, "distance_share": 0},
        {"clusters": 2, "distance_share": 1}, {"clusters": 2, "distance": {"target": "sky"}},
        {"clusters": 2, "distance": {"context": "x"}}, {"clusters": 2, "distance": None},
        {"clusters": 2, "initial_centres": []}, {"clusters": 2, "initial_centres": [{}, {}]},
        {"clusters": 1, "initial_centres": [{"sky": "sun"}]},
        {"clusters": 1, "initial_centres": [
            {"sky": "snow", "coat": "no", "mood": "low", "heat": "?", "same": "only"}]},
        {"clusters": 2, "labels": True}, {"clusters": 2, "random_state": 0},
    ],
)  # fmt: skip
def test_clusterings_that_do_not_fit_are_refused(untouched: Service, query: dict[str, Any]) -> None:
    assert cluster(untouched, **query).status_code == 422
