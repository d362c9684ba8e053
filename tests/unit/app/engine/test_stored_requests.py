"""A paid key replays, whatever version stored its request: each kind, by release and today."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from app.engine import requests
from app.engine.requests import QueryRequest
from app.queries import QUERY_KINDS
from app.queries.tree.body import ALGORITHMS
from mechanisms.statistics import STATISTICS
from storage.database import tables
from storage.database.database import Database
from storage.errors import Busy, KeyReused
from storage.ledger.ledger import Replay, Reservation
from storage.queries.lookup import QueryLookup
from tests.support.service import Service
from tests.support.world import World, loss, request

STORED: list[dict[str, Any]] = [
    one
    for file in sorted(Path(__file__).parent.glob("stored_requests/*.json"))
    for one in json.loads(file.read_text("utf-8"))
]


def read(body: Any) -> QueryRequest:
    return QueryRequest.model_validate_json(json.dumps(body))


def dearer(body: dict[str, Any]) -> dict[str, Any]:
    """Another request: the same query at another price."""
    return {**body, ("rho" if "rho" in body else "epsilon"): "0.123"}


def name(one: dict[str, Any]) -> str:
    return f"{one['release']}-{one['kind']}"


def test_every_kind_of_every_release_is_tried() -> None:
    for release in {one["release"] for one in STORED}:
        assert {one["kind"] for one in STORED if one["release"] == release} >= {
            "selection",
            "top_k",
            "tree",
            "statistic",
            "distance",
            "clustering",
        }
    assert {one["kind"] for one in STORED} <= QUERY_KINDS.keys()


def test_every_kind_is_tried_in_the_form_of_today() -> None:
    """What is stored now must replay later: a default that changes fails here until FORM does."""
    queries = [one["body"]["query"] for one in STORED if one["form"] == requests.FORM]
    assert {query["kind"] for query in queries} == QUERY_KINDS.keys()
    assert {query.get("algorithm") for query in queries} >= ALGORITHMS.keys()
    assert {query.get("statistic") for query in queries} >= STATISTICS.keys()
    paid_in_rho = {one["kind"] for one in STORED if "rho" in one["body"]}
    assert paid_in_rho == {kind.name for kind in QUERY_KINDS.values() if kind.body.gaussian}


@pytest.mark.parametrize("one", STORED, ids=name)
def test_a_stored_request_is_the_request_that_stored_it(one: dict[str, Any]) -> None:
    same = read(one["body"])
    assert same.equals(one["form"], one["stored"].encode())
    other = read(dearer(one["body"]))
    assert not other.equals(one["form"], one["stored"].encode())


@pytest.mark.parametrize("one", STORED, ids=name)
def test_a_field_that_came_later_is_read_with_its_default(one: dict[str, Any]) -> None:
    """As if every field with a default had been added since: the oldest text of this request."""
    oldest = json.dumps(read(one["body"]).model_dump(mode="json", exclude_unset=True)).encode()
    assert read(one["body"]).equals(one["form"], oldest)


@pytest.mark.parametrize("stored", [b"", b"{}", b"[]", b"null", b'{"dataset":"d"}', b"\xff"])
def test_what_is_no_request_is_another_one(stored: bytes) -> None:
    assert not read(STORED[0]["body"]).equals(requests.FORM, stored)


def test_a_request_is_compared_with_the_defaults_of_its_form() -> None:
    """Before form 2 an absent ``sensitivity`` meant ``shifted``; now it means ``auto``."""
    one = next(one for one in STORED if one["kind"] == "top_k" and one["form"] == 1)
    query = {name: one["body"]["query"][name] for name in ("kind", "utilities", "k")}
    short = read({**one["body"], "query": query})
    names = {"sensitivity": "shifted", "selector": "permute_and_flip", "draws": "peeled"}
    full = read({**one["body"], "query": {**query, **names}})
    assert short.equals(1, full.canonical)
    assert not short.equals(2, full.canonical)
    assert short.equals(2, short.canonical)
    for unknown in (0, requests.FORM + 1):
        assert not short.equals(unknown, short.canonical)


def test_a_request_from_before_passes_took_the_most() -> None:
    query: dict[str, Any] = {"kind": "top_k", "k": 2, "objective": "pareto"}
    query["utilities"] = [{"name": "degree"}, {"name": "egocentric_density"}]
    body = {"dataset": "d", "epsilon": "1", "query": query}
    absent, most, eight = (
        read({**body, "query": {**query, **passes}})
        for passes in ({}, {"passes": 64}, {"passes": 8})
    )
    stored = json.loads(absent.canonical)
    del stored["query"]["passes"]
    for form in (1, 2):
        assert absent.equals(form, json.dumps(stored).encode())
        assert most.equals(form, json.dumps(stored).encode())
    assert absent.equals(3, eight.canonical)
    assert not most.equals(3, absent.canonical)


def test_a_forest_had_eight_trees_before_form_4_and_four_in_it() -> None:
    query = {"kind": "tree", "algorithm": "forest"}
    body = {"dataset": "d", "epsilon": "1", "query": query}
    absent, four, eight, five = (
        read({**body, "query": {**query, **trees}})
        for trees in ({}, {"trees": 4}, {"trees": 8}, {"trees": 5})
    )
    for form in (1, 2, 3):
        assert absent.equals(form, eight.canonical)
        assert not five.equals(form, eight.canonical)
        assert not four.equals(form, eight.canonical)
        assert four.equals(form, four.canonical)
    assert absent.equals(4, four.canonical)
    assert not absent.equals(4, eight.canonical)
    assert not absent.equals(5, four.canonical)


def test_a_paid_key_replays_byte_for_byte(tmp_path: Path) -> None:
    """Stored as that release stored it, asked for as this version writes it."""
    database = Database.open(f"sqlite:///{tmp_path}/privypurse.db", tmp_path)
    world = World(database, tmp_path)
    dataset, analyst = world.ready(loss(10), loss(10))
    for number, one in enumerate(STORED):
        key = f"key {number}"
        stored = request(dataset, analyst, key=key, body_hash=bytes.fromhex(one["body_hash"]))
        texts = {"request": one["stored"].encode(), "form": one["form"]}
        paid = world.ledger.reserve(replace(stored, **texts))
        assert isinstance(paid, Reservation)
        assert world.ledger.settle(paid, status=201, body=b"the answer", release_us=0)
        same, other = read(one["body"]), read(dearer(one["body"]))
        # A version of the service with one more request field writes another canonical text of the
        # same request, so the hash differs.
        hash = sha256(same.canonical + b"more").digest()
        lookup = QueryLookup(database, world.datasets, world.ledger.ledger)
        replay = Replay(paid.query_id, 201, b"the answer")
        assert lookup.look_up(dataset.name, analyst, key, hash, same.equals) == replay
        again = request(dataset, analyst, key=key, body_hash=hash)
        assert world.ledger.reserve(replace(again, equals=same.equals)) == replay
        with pytest.raises(KeyReused):
            lookup.look_up(dataset.name, analyst, key, hash, other.equals)
        with pytest.raises(KeyReused):
            world.ledger.reserve(replace(again, equals=other.equals))
    database.close()


def test_a_later_attempt_computes_what_its_form_was_charged_for(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forest in form 4 of requests had four trees. Two share ε in halves, which loses more ρ."""
    levels = {name: {"kind": "categorical", "values": ["x", "y"]} for name in ("a", "b", "c")}
    registered = {
        "name": "t",
        "kind": "table",
        "neighbouring": "add_remove",
        "max_rows": 400,
        "cap": {"epsilon": "1", "delta": "0"},
        "attributes": [{"name": name, **level} for name, level in levels.items()],
    }
    assert people("olga", "POST", "/v1/datasets", json=registered).status_code == 201
    assert people.upload("olga", "t", b"a,b,c\nx,x,y\ny,y,x\n").status_code == 201
    people.grant("olga", "t", "ana")
    services = people.client.app.state.services  # type: ignore[attr-defined]

    async def away(*_reservation: Any, **_reply: Any) -> bool:
        raise Busy("the database cannot answer now")

    def ask(**trees: int) -> httpx.Response:
        query = {"kind": "tree", "algorithm": "forest", "class_attribute": "c", **trees}
        body = {"dataset": "t", "epsilon": "0.1", "query": query}
        return people("ana", "POST", "/v1/queries", json=body, headers={"Idempotency-Key": "k"})

    with monkeypatch.context() as patch:
        patch.setattr(services.ledger, "settle", away)
        assert ask(trees=4).status_code == 409
    late = update(tables.query).values(form=4, lease_until=0)
    services.database.write(lambda connection: connection.execute(late))
    reply = ask()
    assert reply.status_code == 201, reply.text
    assert len(reply.json()["answer"]["trees"]) == 4
    assert people.spent() == "0.1"
