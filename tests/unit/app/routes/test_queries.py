"""The path of a query over HTTP: exact charges, free refusals, one answer per key."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi.testclient import TestClient

from app.config.settings import Settings
from app.contract.ids import uuid7
from app.engine.requests import Priced
from app.main import create_app
from app.usecases import queries
from storage.queries import history
from tests.support.service import EDGES, Service

TOP_2 = {"kind": "top_k", "k": 2, "utilities": [{"name": "degree"}]}
QUESTION = "Which 2 nodes of triangle version 1 have the highest degree?"


@pytest.fixture
def shop(people: Service) -> Service:
    """A ready graph called triangle, on which ana has an allowance of ε = 1."""
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "1")
    return people


@pytest.fixture(scope="module")
def open_shop(shared: Callable[[], AbstractContextManager[Service]]) -> Iterator[Service]:
    """The same with room for the queries of several tests."""
    with shared() as people:
        people.dataset("olga")
        people.grant("olga", "triangle", "ana", "10")
        yield people


def ask(
    service: Service, epsilon: Any = "0.1", who: str = "ana", key: str | None = None, **changes: Any
) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    body = {"dataset": "triangle", "epsilon": epsilon, "query": TOP_2, **changes}
    return service(who, "POST", "/v1/queries", json=body, headers=headers)


def balance(service: Service, who: str = "ana") -> dict[str, Any]:
    (account,) = service(who, "GET", "/v1/budgets").json()["items"]
    return dict(account)


def test_an_answer_costs_exactly_what_was_asked(shop: Service) -> None:
    reply = ask(shop, "0.3")
    assert reply.status_code == 201
    body = reply.json()
    assert body["status"] == "answered"
    assert body["dataset_version"] == 1
    rho = body["charge"].pop("rho")
    assert body["charge"] == {"epsilon": "0.3", "delta": "0", "neighbouring": "edge"}
    assert sum(Decimal(one["rho"]) * one["times"] for one in body["steps"]) == Decimal(rho) > 0
    assert body["remaining"] == {"epsilon": "0.7", "delta": "0"}
    assert len(set(body["answer"]["selected"])) == 2
    assert all(node in range(5) for node in body["answer"]["selected"])
    assert balance(shop)["spent"] == {"epsilon": "0.3", "delta": "0"}
    entries = shop("ana", "GET", "/v1/ledger").json()["items"]
    charges = [entry for entry in entries if entry["kind"] == "charge"]
    assert [entry["head"] for entry in charges] == [body["receipt"]]
    assert charges[0]["epsilon"] == "0.3"


@pytest.mark.parametrize("epsilon", ["0.000001", "0.333333333", 1, 0.1, "1e-3"])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_steps_add_up_to_the_charge_and_to_the_quote(
    open_shop: Service, epsilon: Any, k: int
) -> None:
    query = {**TOP_2, "k": k}
    body = {"dataset": "triangle", "epsilon": epsilon, "query": query}
    quote = open_shop("ana", "POST", "/v1/quotes", json=body).json()
    assert quote["affordable"]
    answer = ask(open_shop, epsilon, query=query).json()
    assert quote["charge"] == answer["charge"]
    assert quote["steps"] == answer["steps"]
    total = sum(Decimal(step["epsilon"]) * step["times"] for step in answer["steps"])
    assert total == Decimal(answer["charge"]["epsilon"]) == Decimal(str(epsilon))


@pytest.mark.parametrize("selector", ["permute_and_flip", "exponential"])
@pytest.mark.parametrize("sensitivity", ["global", "local", "flattened", "shifted"])
@pytest.mark.parametrize("utility", ["degree", "egocentric_density", "egocentric_betweenness"])
@pytest.mark.long
def test_every_utility_sensitivity_and_selector_answers(
    open_shop: Service, utility: str, sensitivity: str, selector: str
) -> None:
    query = {"kind": "selection", "utilities": [{"name": utility}]}
    query |= {"sensitivity": sensitivity, "selector": selector}
    reply = ask(open_shop, "0.1", query=query)
    assert reply.status_code == 201, reply.text
    assert reply.json()["answer"]["selected"] in range(5)


def test_a_large_loss_finds_the_best(people: Service) -> None:
    star = b"source,target\n" + b"".join(b"2,%d\n" % leaf for leaf in (0, 1, 3, 4))
    people.dataset("olga", star, cap={"epsilon": "100000", "delta": "0"})
    people.grant("olga", "triangle", "ana", "100000")
    for draws in ("peeled", "one_shot"):
        query = {**TOP_2, "k": 1, "draws": draws, "sensitivity": "global"}
        assert ask(people, "1000", query=query).json()["answer"]["selected"] == [2]


def test_nodes_come_back_as_they_were_registered(people: Service) -> None:
    ids = ["ann", "bob", "cät", "dora", "7"]
    edges = "source,target\nann,bob\nbob,cät\n7,ann\n".encode()
    people.dataset("olga", edges, nodes={"ids": ids})
    people.grant("olga", "triangle", "ana")
    answer = ask(people, query={**TOP_2, "k": 5}).json()["answer"]
    assert sorted(answer["selected"]) == sorted(ids)


def test_a_key_replays_its_answer_byte_for_byte_for_free(shop: Service) -> None:
    first = ask(shop, key="k1")
    # A retry is compared by its validated body, so explicit defaults and forms of numbers do not
    # matter.
    again = ask(shop, 0.1, key="k1", query={**TOP_2, "draws": "auto", "sensitivity": "auto"})
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first.headers
    assert balance(shop)["spent"]["epsilon"] == "0.1"


def test_a_key_belongs_to_its_body_and_its_user(shop: Service) -> None:
    ask(shop, key="k1")
    other = ask(shop, "0.2", key="k1")
    assert other.status_code == 422
    assert other.json()["type"].endswith("idempotency-key-reused")
    shop.user("amy", "analyst")
    shop.grant("olga", "triangle", "amy")
    assert "Idempotency-Replayed" not in ask(shop, who="amy", key="k1").headers
    assert balance(shop)["spent"]["epsilon"] == "0.1"


def test_without_a_key_every_request_is_new(shop: Service) -> None:
    assert ask(shop).json()["id"] != ask(shop).json()["id"]
    assert balance(shop)["spent"]["epsilon"] == "0.2"


@pytest.mark.parametrize("key", ["", "x" * 256, "tab\tbed", "\x7f", "caf\xe9"])
def test_a_key_is_printable_ascii(open_shop: Service, key: str) -> None:
    before = open_shop.spent()
    headers = {"Idempotency-Key": key.encode("latin-1")}
    body = {"dataset": "triangle", "epsilon": "0.1", "query": TOP_2}
    reply = open_shop("ana", "POST", "/v1/queries", json=body, headers=headers)
    assert reply.status_code == 422
    assert open_shop.spent() == before


def test_a_refusal_says_what_still_fits(shop: Service) -> None:
    ask(shop, "0.75")
    refused = ask(shop, "0.5")
    assert refused.status_code == 403
    problem = refused.json()
    assert problem["type"].endswith("budget-exhausted")
    assert problem["charge"] == {"epsilon": "0.5", "delta": "0"}
    assert problem["remaining"] == {"epsilon": "0.25", "delta": "0"}
    assert problem["largest_affordable"]["epsilon"] == "0.25"
    assert ask(shop, "0.25").status_code == 201
    assert ask(shop, "0.000001").status_code == 403


def test_the_cap_holds_for_all_analysts_together(people: Service) -> None:
    people.dataset("olga", cap={"epsilon": "1", "delta": "0"})
    people.user("amy", "analyst")
    for analyst in ("ana", "amy"):
        people.grant("olga", "triangle", analyst, "1")
    assert ask(people, "0.6").status_code == 201
    refused = ask(people, "0.6", who="amy")
    assert refused.status_code == 403
    assert refused.json()["type"].endswith("cap-exhausted")
    assert set(refused.json()) & {"remaining", "largest_affordable"} == set()
    assert balance(people, "amy")["spent"]["epsilon"] == "0"
    quote = {"dataset": "triangle", "epsilon": "0.6", "query": TOP_2}
    assert not people("amy", "POST", "/v1/quotes", json=quote).json()["affordable"]
    assert ask(people, "0.4", who="amy").status_code == 201


def test_a_quote_knows_the_limit_over_all_datasets(people: Service) -> None:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "5")
    quote = {"dataset": "triangle", "epsilon": "0.6", "query": TOP_2}
    assert people("ana", "POST", "/v1/quotes", json=quote).json()["affordable"]
    limit = {"epsilon": "0.5", "delta": "0"}
    assert people("root", "PUT", "/v1/users/ana/budget", json=limit).status_code == 200
    assert not people("ana", "POST", "/v1/quotes", json=quote).json()["affordable"]
    assert ask(people, "0.6").status_code == 403


@pytest.mark.long
def test_200_requests_at_once_for_room_of_10(shop: Service) -> None:
    with ThreadPoolExecutor(200) as pool:
        replies = list(pool.map(lambda _: ask(shop, "0.1"), range(200)))
    statuses = [reply.status_code for reply in replies]
    assert statuses.count(201) == 10
    assert statuses.count(403) == 190
    refused = [reply.json() for reply in replies if reply.status_code == 403]
    assert all(problem["type"].endswith("budget-exhausted") for problem in refused)
    assert balance(shop)["spent"] == balance(shop)["allowance"]
    entries = shop("ana", "GET", "/v1/ledger?limit=500").json()["items"]
    assert sum(Decimal(e["epsilon"]) for e in entries if e["kind"] == "charge") == 1
    assert len({reply.json()["id"] for reply in replies if reply.status_code == 201}) == 10


def test_one_key_50_times_at_once_is_one_charge_and_one_answer(shop: Service) -> None:
    def persistent(_: int) -> httpx.Response:
        while (reply := ask(shop, key="again")).status_code == 409:
            assert reply.json()["type"].endswith("still-running")
            assert int(reply.headers["Retry-After"]) >= 0
        return reply

    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(persistent, range(50)))
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.content for reply in replies}) == 1
    assert balance(shop)["spent"]["epsilon"] == "0.1"


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0}, {"epsilon": -1}, {"epsilon": 1e-300}, {"epsilon": 1e300},
        {"epsilon": "1e-300"}, {"epsilon": "1e300"}, {"epsilon": "0.0000001"}, {"epsilon": None},
        {"epsilon": True}, {"epsilon": "0.1234567891"}, {"epsilon": "1000000.1"},
        {"epsilon": [1]}, {"delta": "0.1"}, {"dataset": 5}, {"query": None}, {"query": []},
        {"query": {**TOP_2, "k": 10**9}}, {"query": {**TOP_2, "k": 0}},
        {"query": {**TOP_2, "k": True}}, {"query": {**TOP_2, "k": "2"}},
        {"query": {**TOP_2, "k": 2.0}}, {"query": {**TOP_2, "k": 10**400}},
        {"query": {**TOP_2, "k": 6}}, {"query": {**TOP_2, "seed": 1}},
        {"query": {**TOP_2, "kind": "seed"}}, {"query": {**TOP_2, "utilities": []}},
        {"query": {**TOP_2, "utilities": [{"name": "degree"}] * 2}},
        {"query": {**TOP_2, "utilities": [{"name": "count"}]}},
        {"query": {**TOP_2, "utilities": [{"name": "\ud800"}]}},
        {"query": {**TOP_2, "selector": "laplace", "draws": "peeled"}},
        {"query": {**TOP_2, "kind": "selection", "selector": "laplace"}},
        {"query": {**TOP_2, "selector": "none"}},
        {"query": {**TOP_2, "sensitivity": "none"}},
        {"query": {**TOP_2, "candidates": {"nodes": "some"}}},
        {"query": {**TOP_2, "k": 5}, "epsilon": "0.0000009"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/queries", "/v1/quotes"])
def test_bad_queries_are_refused_for_free(
    open_shop: Service, path: str, changes: dict[str, Any]
) -> None:
    body = {"dataset": "triangle", "epsilon": "0.1", "query": TOP_2, **changes}
    before = open_shop.spent()
    reply = open_shop(
        "ana", "POST", path, content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert reply.status_code == 422, reply.text
    assert reply.json()["type"].rsplit("/", 1)[1] in ("invalid-request", "unsupported-query")
    assert open_shop.spent() == before


def test_checks_come_in_the_order_of_the_contract(people: Service) -> None:
    people.dataset("olga", None)
    unsupported = {**TOP_2, "k": 6}
    assert ask(people).status_code == 404  # Without an account the dataset does not exist for ana.
    people.grant("olga", "triangle", "ana", "0.1")
    assert ask(people, "5", query=unsupported).json()["type"].endswith("unsupported-query")
    assert ask(people, "5").json()["type"].endswith("no-records")
    people.upload("olga", "triangle", EDGES)
    assert ask(people, "5").json()["type"].endswith("budget-exhausted")
    assert ask(people, "0.1", key="k").status_code == 201
    # A retry with a used idempotency key is answered before all checks of the dataset.
    people("olga", "DELETE", "/v1/datasets/triangle/records")
    assert ask(people, "0.1", key="k").status_code == 201
    assert ask(people, "5", query=unsupported, key="k").json()["type"].endswith("key-reused")
    assert ask(people, "5").json()["type"].endswith("no-records")


def test_only_analysts_ask_and_only_of_what_they_may_see(shop: Service) -> None:
    for who in ("olga", "ada", "otto"):
        assert ask(shop, who=who).status_code == 403
    shop.user("eve", "analyst")
    hidden = ask(shop, who="eve")
    absent = ask(shop, who="eve", dataset="nowhere")
    assert hidden.status_code == absent.status_code == 404
    one, two = hidden.json(), absent.json()
    assert {**one, "request_id": 0} == {**two, "request_id": 0}


def test_an_owner_who_is_an_analyst_too_needs_an_account(people: Service) -> None:
    people.user("oscar", "owner", "analyst")
    people.dataset("oscar")
    body = {"dataset": "triangle", "epsilon": "0.1", "query": TOP_2}
    assert people("oscar", "POST", "/v1/queries", json=body).status_code == 404
    assert people("oscar", "POST", "/v1/quotes", json=body).status_code == 404


@pytest.mark.parametrize("longest", [queries.BYTES, 100])
def test_a_former_analyst_sees_no_query_on_datasets_of_others(
    shop: Service, monkeypatch: pytest.MonkeyPatch, longest: int
) -> None:
    monkeypatch.setattr(queries, "BYTES", longest)
    path = f"/v1/queries/{ask(shop).json()['id']}"
    assert shop("ana", "GET", path).status_code == 200
    shop("ada", "PATCH", "/v1/users/ana", json={"roles": ["owner"]})
    assert shop("ana", "GET", path).status_code == 404


def test_a_quote_needs_no_records(shop: Service, settings: Settings) -> None:
    shutil.rmtree(settings.data / "datasets")
    body = {"dataset": "triangle", "epsilon": "0.1", "query": TOP_2}
    quote = shop("ana", "POST", "/v1/quotes", json=body)
    assert quote.status_code == 200
    assert quote.json()["charge"]["epsilon"] == "0.1"
    assert balance(shop)["spent"]["epsilon"] == "0"


def test_a_quote_finds_the_loss_for_a_wanted_accuracy(shop: Service) -> None:
    target = {"dataset": "triangle", "target": {"score_below_best": 8.0}, "query": TOP_2}
    quote = shop("ana", "POST", "/v1/quotes", json=target).json()
    assert quote["accuracy"]["score_below_best"] <= 8.0
    epsilon = Decimal(quote["charge"]["epsilon"])
    worse = {"dataset": "triangle", "epsilon": str(epsilon * Decimal("0.9")), "query": TOP_2}
    worse["epsilon"] = str(round(epsilon * Decimal("0.9"), 9))
    reply = shop("ana", "POST", "/v1/quotes", json=worse).json()
    assert reply["accuracy"]["score_below_best"] > 8.0
    for bad in ({"score_below_best": 0}, {"luck": 1}, {}):
        refused = shop("ana", "POST", "/v1/quotes", json={**target, "target": bad})
        assert refused.status_code == 422, refused.text
    both = shop("ana", "POST", "/v1/quotes", json={**target, "epsilon": "0.1"})
    assert both.status_code == 422


def test_a_failure_is_charged_and_tells_nothing(
    tmp_path: Path, fast_lane: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same query made to fail on two neighbouring graphs gives the same reply."""

    def fails(records: Any, name: str) -> None:
        raise ValueError(f"the text of an error may quote records: {records.columns[name]}")

    monkeypatch.setattr("mechanisms.utilities.unit_nodes.node_column", fails)
    seen = []
    for name, edges in (("x", EDGES), ("y", EDGES + b"0,3\n")):
        settings = Settings(data=tmp_path / name, release_interval=0, workers=2, upload_wait=300)
        app = create_app(settings, fast_lane=fast_lane)
        with TestClient(app, raise_server_exceptions=False) as client:
            service = Service(client, settings)
            service.user("olga", "owner")
            service.user("ana", "analyst")
            service.dataset("olga", edges)
            service.grant("olga", "triangle", "ana")
            reply = ask(service, key="k")
            replay = ask(service, key="k")
            assert (replay.status_code, replay.content) == (reply.status_code, reply.content)
            assert balance(service)["spent"]["epsilon"] == "0.1"
            query = service("ana", "GET", f"/v1/queries/{reply.json()['id']}").json()
            assert query["status"] == "failed"
            body = {k: v for k, v in reply.json().items() if k not in ("id", "request_id")}
            varying = ("x-request-id", "date")
            headers = {k: v for k, v in reply.headers.items() if k not in varying}
            seen.append((reply.status_code, headers, body))
    assert seen[0] == seen[1]
    assert seen[0][0] == 500
    assert seen[0][2]["type"].endswith("query-failed")


@pytest.fixture
def short_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Minutes last a microsecond, so owners and auditors see immediately that a query has ended."""
    monkeypatch.setattr(history, "MINUTE_US", 1)


@pytest.mark.usefixtures("short_minutes")
def test_history_shows_answers_to_their_analyst_alone(shop: Service) -> None:
    first, second = ask(shop), ask(shop, "0.2")
    path = f"/v1/queries/{first.json()['id']}"
    assert next(iter(first.json()["answer"].items())) == ("question", QUESTION)
    assert shop("ana", "GET", path).content == first.content
    for who in ("olga", "otto"):
        query = shop(who, "GET", path).json()
        assert query["status"] == "answered"
        assert query["charge"] == first.json()["charge"]
        assert query["question"] == QUESTION
        assert "answer" not in query
    shop.user("eve", "analyst")
    hidden = shop("eve", "GET", path)
    absent = shop("eve", "GET", f"/v1/queries/{uuid7()}")
    assert hidden.status_code == absent.status_code == 404
    ids = [second.json()["id"], first.json()["id"]]
    for who in ("ana", "olga", "otto"):
        listed = shop(who, "GET", "/v1/queries?dataset=triangle").json()["items"]
        assert [item["id"] for item in listed] == ids
        assert {item["question"] for item in listed} == {QUESTION}
        assert all("answer" not in item for item in listed)
    assert shop("eve", "GET", "/v1/queries").json()["items"] == []


LIMITS = {"SHORT": 50, "DATASETS": 8, "BYTES": 64 * 1024}


@pytest.mark.parametrize(
    ("limit", "in_thread", "on_loop"),
    [
        ({}, set(), {"page", "reply"}),
        ({"SHORT": 49}, {"page"}, {"reply"}),
        ({"DATASETS": 0}, {"page"}, {"page", "reply"}),
        ({"BYTES": 100}, {"page", "find", "reply"}, set()),
    ],
)
def test_long_texts_are_read_beside_the_event_loop(
    shop: Service,
    monkeypatch: pytest.MonkeyPatch,
    limit: dict[str, int],
    in_thread: set[str],
    on_loop: set[str],
) -> None:
    first, second = ask(shop, "0.2"), ask(shop, "0.3")
    for name, value in {**LIMITS, **limit}.items():
        assert getattr(queries, name) == LIMITS[name]
        monkeypatch.setattr(queries, name, value)
    used: dict[bool, set[str]] = {True: set(), False: set()}

    def noted(name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            used[threading.current_thread().name == "AnyIO worker thread"].add(name)
            return read(*args, **options)

        return call

    for name in ("page", "find", "reply"):
        monkeypatch.setattr(history.Queries, name, noted(name, getattr(history.Queries, name)))
    listed = shop("ana", "GET", "/v1/queries?limit=50").json()["items"]
    assert [item["id"] for item in listed] == [second.json()["id"], first.json()["id"]]
    assert shop("ana", "GET", f"/v1/queries/{first.json()['id']}").content == first.content
    assert used == {True: in_thread, False: on_loop}


def test_an_answer_of_before_stays_as_it_was_stored(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers of earlier versions do not begin with a question; their queries show one."""
    reply = Priced.reply

    def reply_of_before(self: Priced, reservation: Any, answer: Any) -> bytes:
        now = json.loads(reply(self, reservation, answer))
        del now["answer"]["question"]
        return json.dumps(now).encode()

    with monkeypatch.context() as before:
        before.setattr(Priced, "reply", reply_of_before)
        first = ask(shop, key="before")
    assert "question" not in first.json()["answer"]
    again = ask(shop, key="before")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.content == first.content
    path = f"/v1/queries/{first.json()['id']}"
    assert shop("ana", "GET", path).content == first.content
    assert shop("ana", "GET", "/v1/queries").json()["items"][0]["question"] == QUESTION


@pytest.mark.usefixtures("short_minutes")
def test_who_is_an_auditor_now_sees_no_answer_of_when_they_were_an_analyst(shop: Service) -> None:
    first = ask(shop)
    path = f"/v1/queries/{first.json()['id']}"
    shop("ada", "PATCH", "/v1/users/ana", json={"roles": ["auditor"]})
    query = shop("ana", "GET", path).json()
    assert query["status"] == "answered"
    assert "answer" not in query
    shop("ada", "PATCH", "/v1/users/ana", json={"roles": ["auditor", "analyst"]})
    assert shop("ana", "GET", path).content == first.content


def test_an_answered_query_cannot_be_cancelled(shop: Service) -> None:
    path = f"/v1/queries/{ask(shop).json()['id']}"
    reply = shop("ana", "DELETE", path)
    assert reply.status_code == 409
    assert reply.json()["type"].endswith("too-late")
    assert balance(shop)["spent"]["epsilon"] == "0.1"
    assert shop("olga", "DELETE", path).status_code == 403
    shop.user("eve", "analyst")
    assert shop("eve", "DELETE", path).status_code == 404


def test_several_records_a_person_run_the_mechanism_at_a_fraction(people: Service) -> None:
    people.dataset("olga", records_per_person=3)
    people.grant("olga", "triangle", "ana")
    steps = ask(people, "0.1", query={**TOP_2, "draws": "peeled"}).json()["steps"]
    assert [step["epsilon"] for step in steps[:1]] == ["0.016666666"]
    assert sum(Decimal(s["epsilon"]) * s["times"] for s in steps) == Decimal("0.1")
    assert "3 records" in steps[-1]["what"]


def test_ids_sort_by_time() -> None:
    ids = [uuid7() for _ in range(3)]
    assert len(set(ids)) == 3
    assert all(id.version == 7 and id.variant == UUID(int=0x8 << 60).variant for id in ids)
    assert [id.int >> 80 for id in ids] == sorted(id.int >> 80 for id in ids)
