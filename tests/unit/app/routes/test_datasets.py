"""Registering, seeing, uploading, withdrawing."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from app.config.settings import Settings
from app.main import create_app
from tests.support.patience import until
from tests.support.service import EDGES, GRAPH, Service

TABLE: dict[str, Any] = {
    "name": "adult",
    "kind": "table",
    "neighbouring": "replace",
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["Female", "Male"]},
        {"name": "age", "kind": "numeric", "bounds": [0, 120], "bins": 10},
    ],
    "class_attribute": "sex",
    "cap": {"epsilon": "20"},
}


def problem(reply: Any) -> tuple[int, str]:
    return reply.status_code, reply.json()["type"].rpartition("/")[2]


def test_registration_is_served_back_and_names_are_taken_for_ever(people: Service) -> None:
    reply = people("olga", "POST", "/v1/datasets", json=TABLE)
    assert reply.status_code == 201
    assert reply.headers["location"] == "/v1/datasets/adult"
    dataset = people("olga", "GET", "/v1/datasets/adult").json()
    assert dataset == reply.json()
    assert dataset["cap"] == {"epsilon": "20", "delta": "0"}
    assert dataset["attributes"][1]["bounds"] == [0, 120]
    assert (dataset["version"], dataset["status"], dataset["owner"]) == (0, "empty", "olga")
    assert problem(people("olga", "POST", "/v1/datasets", json=TABLE)) == (409, "already-exists")


def test_who_sees_a_dataset(people: Service) -> None:
    people.user("olaf", "owner")
    people.user("both", "admin", "auditor")
    people.user("anna", "admin", "analyst")
    name = people.dataset("olga")
    path = f"/v1/datasets/{name}"
    assert people("olaf", "GET", path).status_code == 404
    assert people("ana", "GET", path).status_code == 404
    assert people("ana", "GET", "/v1/datasets").json() == {"items": [], "next": None}
    assert people("ada", "GET", path).json() == {"name": name}
    assert people("ada", "GET", "/v1/datasets").json()["items"] == [{"name": name}]
    assert people("anna", "GET", path).json() == {"name": name}
    for who in ("olga", "otto", "both"):
        assert people(who, "GET", path).json()["max_degree"] == 4
    for who in ("ana", "anna"):
        people.grant("olga", name, who)
        assert people(who, "GET", path).json()["status"] == "ready"
    assert "upload" not in people("ana", "GET", path).json()


def test_what_is_not_yours_looks_like_what_does_not_exist(people: Service) -> None:
    people.user("olaf", "owner")
    people.dataset("olga", name="hidden")
    routes = [
        ("olaf", "GET", "/v1/datasets/{}", {}),
        ("ana", "GET", "/v1/datasets/{}", {}),
        ("olaf", "PUT", "/v1/datasets/{}/nodes", {"content": b"1\n"}),
        ("olaf", "PUT", "/v1/datasets/{}/records", {"content": EDGES}),
        ("olaf", "DELETE", "/v1/datasets/{}/records", {}),
        ("olaf", "PUT", "/v1/datasets/{}/budgets/ana", {"json": {"epsilon": 1}}),
        ("olaf", "GET", "/v1/datasets/{}/budgets", {}),
        ("ana", "GET", "/v1/budgets/{}/history", {}),
    ]
    for who, method, path, sent in routes:
        if "content" in sent:
            sent["headers"] = {"Content-Type": "text/csv"}
        seen = [people(who, method, path.format(name), **sent) for name in ("hidden", "absent")]
        assert [reply.status_code for reply in seen] == [404, 404], path
        bodies = [{**reply.json(), "request_id": ""} for reply in seen]
        assert bodies[0] == bodies[1], path
        headers = [{k: v for k, v in r.headers.items() if k != "x-request-id"} for r in seen]
        assert headers[0] == headers[1], path


def parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"source": [0, 1, 2, 3], "target": [1, 2, 0, 4]}), sink)
    return sink.getvalue()


def graph() -> Any:
    example = nx.Graph([(0, 1), (1, 2), (2, 0), (3, 4)])
    return example


UPLOADS = {
    "csv": lambda: (EDGES, "text/csv", {}),
    "csv, charset": lambda: (EDGES, "text/csv; charset=utf-8", {}),
    "csv.gz": lambda: (gzip.compress(EDGES), "text/csv", {"Content-Encoding": "gzip"}),
    "parquet": lambda: (parquet(), "application/vnd.apache.parquet", {}),
    "graphml": lambda: (
        "\n".join(nx.generate_graphml(graph())).encode(),
        "application/graphml+xml",
        {},
    ),
    "node-link": lambda: (
        json.dumps(nx.node_link_data(graph(), edges="edges")).encode(),
        "application/json",
        {},
    ),
}


@pytest.mark.parametrize("form", UPLOADS)
def test_records_come_in_every_form(people: Service, form: str) -> None:
    name = people.dataset("olga", records=None)
    content, media_type, headers = UPLOADS[form]()
    reply = people.upload("olga", name, content, media_type, **headers)
    assert (reply.status_code, reply.json()) == (
        201,
        {"dataset": name, "version": 1, "status": "ready"},
    )
    assert list((people.settings.data / "incoming").iterdir()) == []


def test_versions_count_up_and_withdrawal_empties(people: Service) -> None:
    name = people.dataset("olga")
    assert people.upload("olga", name, EDGES).json()["version"] == 2
    path = f"/v1/datasets/{name}/records"
    assert people("olga", "DELETE", path).status_code == 204
    assert people("olga", "GET", f"/v1/datasets/{name}").json()["status"] == "empty"
    assert problem(people("olga", "DELETE", path)) == (409, "no-records")
    assert people.upload("olga", name, EDGES).json()["version"] == 3
    people.grant("olga", name, "ana")
    path = f"/v1/datasets/{name}"
    versions = people("olga", "GET", path).json()["versions"]
    assert [one["version"] for one in versions] == [3, 2, 1]
    assert [one["status"] for one in versions] == ["ready", "retired", "retired"]
    assert all(one["published"].endswith("Z") for one in versions)
    for who in ("ana", "otto", "ada"):
        assert "versions" not in people(who, "GET", path).json()


def test_refused_records_are_told_to_the_owner_alone_and_change_nothing(people: Service) -> None:
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    before = people("ana", "GET", f"/v1/datasets/{name}").json()
    reply = people.upload("olga", name, b"source,target\n0,1\n2,2\n0,3\n")
    assert problem(reply) == (422, "invalid-records")
    assert any(error["loc"][:2] == ["line", 3] for error in reply.json()["errors"])
    owner = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert (owner["version"], owner["status"]) == (1, "refused")
    assert owner["upload"]["queries"] == "read version 1"
    assert owner["upload"]["errors"] == reply.json()["errors"]
    for who in ("ana", "otto"):
        assert people(who, "GET", f"/v1/datasets/{name}").json() == before
    assert list((people.settings.data / "incoming").iterdir()) == []
    assert not list((people.settings.data / "datasets").glob("*/staging-*"))


@pytest.mark.parametrize(
    ("content", "media_type", "headers", "expected"),
    [
        (EDGES, "text/html", {}, (415, "unsupported-media-type")),
        (EDGES, "", {}, (415, "unsupported-media-type")),
        (EDGES, "text/csv; charset=latin-1", {}, (415, "unsupported-media-type")),
        (EDGES, "text/csv", {"Content-Encoding": "br"}, (415, "unsupported-media-type")),
        (
            EDGES,
            "application/x-parquet",
            {"Content-Encoding": "gzip"},
            (415, "unsupported-media-type"),
        ),
        (EDGES, "text/csv", {"Content-Encoding": "gzip"}, (422, "invalid-records")),
        (b"\x00\xff" * 500, "text/csv", {}, (422, "invalid-records")),
        (b"PAR1 rubbish PAR1", "application/x-parquet", {}, (422, "invalid-records")),
        (b"", "text/csv", {}, (422, "invalid-records")),
    ],
)
def test_rubbish_is_refused(
    people: Service,
    content: bytes,
    media_type: str,
    headers: dict[str, str],
    expected: tuple[int, str],
) -> None:
    name = people.dataset("olga", records=None)
    assert problem(people.upload("olga", name, content, media_type, **headers)) == expected
    assert people("olga", "GET", f"/v1/datasets/{name}").json()["version"] == 0


@pytest.fixture
def small(settings: Settings) -> Iterator[Service]:
    """A service that takes 10,000 bytes of upload and 100,000 decompressed, and does not wait."""
    limits = {"upload_limit": 10_000, "decompressed_limit": 100_000, "upload_wait": 0}
    narrow = settings.model_copy(update=limits)
    with TestClient(create_app(narrow), raise_server_exceptions=False) as client:
        service = Service(client, narrow)
        service.user("olga", "owner")
        yield service


def test_an_unknown_and_a_missing_kind_are_told_with_their_place(people: Service) -> None:
    for kind, said in (
        ({"kind": "tabel"}, "Expected one of 'graph', 'table', 'prefix'"),
        ({}, "Field required"),
    ):
        reply = people("olga", "POST", "/v1/datasets", json={"name": "d", **kind})
        assert reply.status_code == 422
        (error,) = reply.json()["errors"]
        assert (error["loc"], error["msg"]) == (["body", "kind"], said)


def test_an_upload_that_is_too_long_is_cut_off(small: Service) -> None:
    name = small.dataset("olga", records=None)
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(2_000):
            sent += 1
            yield b"0,1\n" * 1_000

    assert problem(small.upload("olga", name, b"x" * 10_001)) == (413, "too-large")
    assert problem(small.upload("olga", name, chunks())) == (413, "too-large")
    assert list((small.settings.data / "incoming").iterdir()) == []


def wait_for(service: Service, name: str) -> dict[str, Any]:
    dataset: dict[str, Any] = {}

    def ended() -> bool:
        dataset.update(service("olga", "GET", f"/v1/datasets/{name}").json())
        return bool(dataset["status"] != "preparing")

    until(ended, "the upload never ended")
    return dataset


def test_a_long_preparation_is_followed_in_the_status(small: Service) -> None:
    name = small.dataset("olga", records=None)
    reply = small.upload("olga", name, EDGES)
    assert reply.status_code == 202
    assert reply.json() == {"dataset": name, "version": 0, "status": "preparing"}
    assert reply.headers["location"] == f"/v1/datasets/{name}"
    assert reply.headers["retry-after"] == "2"
    dataset = wait_for(small, name)
    assert (dataset["status"], dataset["version"]) == ("ready", 1)


def test_a_gzip_bomb_is_refused_while_it_is_read(small: Service) -> None:
    name = small.dataset("olga", records=None)
    bomb = gzip.compress(b"source,target\n" + b"0,1\n" * 100_000)
    assert len(bomb) < 10_000
    headers = {"Content-Encoding": "gzip"}
    assert small.upload("olga", name, bomb, **headers).status_code == 202
    dataset = wait_for(small, name)
    assert (dataset["status"], dataset["version"]) == ("refused", 0)
    assert dataset["upload"]["queries"] == "have no records"
    assert dataset["upload"]["errors"][0]["loc"] == ["upload"]


NODES = {"headers": {"Content-Type": "text/csv"}, "content": b"alice\nbob\ncarol\n"}


def test_a_node_list_comes_before_the_records(people: Service) -> None:
    people("olga", "POST", "/v1/datasets", json={**GRAPH, "nodes": None, "max_degree": 2})
    assert problem(people.upload("olga", "triangle", EDGES)) == (409, "nodes-missing")
    path = "/v1/datasets/triangle/nodes"
    few = {**NODES, "content": b"alice\nbob\n"}
    assert problem(people("olga", "PUT", path, **few)) == (422, "invalid-records")
    reply = people("olga", "PUT", path, **NODES)
    assert (reply.status_code, reply.json()) == (200, {"dataset": "triangle", "nodes": 3})
    assert problem(people("olga", "PUT", path, **NODES)) == (409, "already-exists")
    edges = b"source,target\nalice,bob\n"
    assert people.upload("olga", "triangle", edges).json()["version"] == 1
    dataset = people("olga", "GET", "/v1/datasets/triangle").json()
    assert (dataset["nodes"], dataset["max_degree"]) == ({"count": 3}, 2)


def test_nodes_that_were_counted_may_be_named_before_the_records(people: Service) -> None:
    people.dataset("olga", records=None, nodes={"count": 3}, max_degree=2)
    path = "/v1/datasets/triangle/nodes"
    few = {**NODES, "content": b"alice\nbob\n"}
    many = {**NODES, "content": b"alice\nbob\ncarol\ndave\n"}
    assert problem(people("olga", "PUT", path, **few)) == (422, "invalid-records")
    assert problem(people("olga", "PUT", path, **many)) == (422, "invalid-records")
    assert people("olga", "PUT", path, **NODES).status_code == 200
    assert problem(people("olga", "PUT", path, **NODES)) == (409, "already-exists")
    assert problem(people.upload("olga", "triangle", b"source,target\n0,1\n"))[0] == 422
    assert people.upload("olga", "triangle", b"source,target\nalice,bob\n").status_code == 201


def test_nodes_that_are_known_stay(people: Service) -> None:
    people.dataset("olga", nodes={"count": 5})
    path = "/v1/datasets/triangle/nodes"
    five = {**NODES, "content": b"a\nb\nc\nd\ne\n"}
    assert problem(people("olga", "PUT", path, **five)) == (409, "already-exists")
    people("olga", "DELETE", "/v1/datasets/triangle/records")
    assert problem(people("olga", "PUT", path, **five)) == (409, "already-exists")


def test_node_lists_are_for_graphs_and_for_csv(people: Service) -> None:
    people("olga", "POST", "/v1/datasets", json=TABLE)
    path = "/v1/datasets/adult/nodes"
    assert problem(people("olga", "PUT", path, **NODES)) == (422, "invalid-request")
    other = {**NODES, "headers": {"Content-Type": "application/json"}}
    assert problem(people("olga", "PUT", path, **other)) == (415, "unsupported-media-type")


def test_the_first_upload_fixes_the_rows_of_a_replace_table(people: Service) -> None:
    people("olga", "POST", "/v1/datasets", json=TABLE)
    two, three = b"age,sex\n30,Male\n120,Female\n", b"sex,age\nMale,1\nMale,2\nMale,3\n"
    assert people.upload("olga", "adult", two).status_code == 201
    assert problem(people.upload("olga", "adult", three)) == (422, "invalid-records")
    assert people.upload("olga", "adult", two).json()["version"] == 2
