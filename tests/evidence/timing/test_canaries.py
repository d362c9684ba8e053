"""Values planted in the records are in nothing that anybody is told: replies, pages, logs, metrics.

A canary is a text that stands in records alone, a count of them, the size or a hash of a file.
Every GET route is walked as every role, over a graph and a table; so are quotes, refused uploads
and queries that fail. Answers name public candidates, so no canary is one by chance.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import SecretStr

from app.config.settings import Settings
from app.contract.queries import QuoteOut
from app.engine import attempts
from app.queries.selection.body import Selection
from app.telemetry import logs
from app.usecases.services import Services
from tests.support.service import Service
from tests.support.walk import every_get

PEOPLE = {"ada": "admin", "olga": "owner", "ana": "analyst", "otto": "auditor"}
TOKEN = "let me see"

NODES, HUB, EDGES = [f"n{i:04}" for i in range(3000)], 1777, 2311
ROWS, MARKED = 3119, 1283
#: Planted texts: a cell that is clamped when it is read, and a cell and a node that are refused.
#: They are so long that no hash, id or time contains one by chance: for the shortest, of 11
#: letters, the probability is below 10⁻⁹.
CELL, REFUSED_CELL, REFUSED_NODE = "48213577125046.4821935", "CANARY-cell", "CANARY-node"
#: Planted texts have at least this many characters, so they are searched for anywhere in an output.
LONG_ENOUGH = 11


def graph_file() -> bytes:
    """A hub with ``HUB`` neighbours, and as many other edges as make ``EDGES``."""
    pairs = [(0, i) for i in range(1, HUB + 1)]
    pairs += [(i, i + 1) for i in range(1, EDGES - HUB + 1)]
    return b"source,target\n" + b"".join(f"{NODES[a]},{NODES[b]}\n".encode() for a, b in pairs)


def table_file() -> bytes:
    rows = ["yes,3"] * MARKED + ["no,4"] * (ROWS - MARKED - 1) + [f"no,{CELL}"]
    return ("marked,age\n" + "".join(f"{row}\n" for row in rows)).encode()


FILES = {"ring": graph_file(), "people": table_file()}
DESCRIPTIONS: dict[str, dict[str, Any]] = {
    "ring": {"nodes": {"ids": NODES}, "max_degree": 2900},
    "people": {
        "kind": "table",
        "neighbouring": "add_remove",
        "nodes": None,
        "max_degree": None,
        "max_rows": 5000,
        "attributes": [
            {"name": "marked", "kind": "categorical", "values": ["yes", "no"]},
            {"name": "age", "kind": "numeric", "bounds": [0, 100], "bins": 10, "clamp": True},
        ],
    },
}
NODE_QUERY = {
    "kind": "selection",
    "candidates": {"nodes": "all"},
    "utilities": [{"name": "degree"}],
}
VALUE_QUERY = {
    "kind": "selection",
    "candidates": {"values_of": "marked"},
    "utilities": [{"name": "count"}],
}
QUERIES = {"ring": NODE_QUERY, "people": VALUE_QUERY}


def canaries() -> dict[str, re.Pattern[str]]:
    """Name → pattern of the canary; a number matches only as a whole number."""
    numbers = {"degree": HUB, "edges": EDGES, "rows": ROWS, "marked": MARKED}
    numbers |= {"unmarked": ROWS - MARKED, "nodes met": HUB + 1}
    for name, content in FILES.items():
        numbers[f"size of {name}"] = len(content)
    patterns = {
        # Four digits are enough, because numbers that stand alone are the same in every run. A
        # planted number matches as 2311, 2,311 or 2311.0, but not inside a longer number, a date or
        # an id.
        what: re.compile(rf"(?<![\w.,-]){n // 1000},?{n % 1000:03}(?:\.0)?(?![\w:-]|[.,]\d)")
        for what, n in numbers.items()
    }
    texts = [CELL, CELL.split(".")[0], REFUSED_CELL, REFUSED_NODE]
    texts += [sha256(content).hexdigest()[:16] for content in FILES.values()]
    assert all(len(text) >= LONG_ENOUGH for text in texts)
    patterns["rounded cell"] = re.compile(r"\b4\.8213\d*e\+?13\b", re.IGNORECASE)
    return patterns | {text: re.compile(re.escape(text), re.IGNORECASE) for text in texts}


CANARIES = canaries()


def sung(text: str) -> set[str]:
    """Returns the canaries that a text contains."""
    return {name for name, pattern in CANARIES.items() if pattern.search(text)}


Shown = pytest.CaptureFixture[str]


@pytest.fixture
def settings(settings: Settings, capsys: Shown) -> Settings:
    # The log uses the standard error of the moment when the service starts, so ``capsys`` comes
    # first.
    del capsys
    return settings.model_copy(update={"metrics_token": SecretStr(TOKEN)})


Outputs = dict[str, str]


@pytest.fixture
def planted(people: Service) -> Service:
    """Both datasets with canaries in them, granted, and asked once each by ana."""
    for name, description in DESCRIPTIONS.items():
        changes = {"name": name, **description}
        if changes.get("nodes", 0) is None:
            body = {"name": name, "cap": {"epsilon": "10", "delta": "0"}}
            body |= {k: v for k, v in description.items() if v is not None}
            assert people("olga", "POST", "/v1/datasets", json=body).status_code == 201
            assert people.upload("olga", name, FILES[name]).status_code == 201
        else:
            people.dataset("olga", FILES[name], **changes)
        people.grant("olga", name, "ana", "2")
        assert ask(people, name).status_code == 201
    return people


def ask(people: Service, name: str) -> Any:
    body = {"dataset": name, "epsilon": "0.5", "query": QUERIES[name]}
    return people("ana", "POST", "/v1/queries", json=body)


def everything_told(
    people: Service,
    application: FastAPI,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Shown,
    readers: Collection[str] = tuple(PEOPLE),
) -> Outputs:
    """Every reply, page, metric and log line that a reader or operator can read, by source."""
    outputs: Outputs = {}
    # The log must go to the standard error of this test. That of the fixtures was another one.
    logs.configure()

    def note(where: str, reply: Any) -> None:
        head = "\n".join(f"{k}: {v}" for k, v in reply.headers.items() if k != "content-length")
        assert f"{where} {reply.status_code}" not in outputs
        outputs[f"{where} {reply.status_code}"] = f"{head}\n\n{reply.text}"

    for name, content in (
        ("ring", f"source,target\nn0001,{REFUSED_NODE}\n".encode()),
        ("ring", FILES["ring"] + b"n0000,n0001\n"),
        ("people", f"marked,age\n{REFUSED_CELL},3\n".encode()),
        ("people", f"marked,age\nyes,{REFUSED_CELL}\n".encode()),
        ("people", b"marked,age\n" + b"yes,3\n" * 5001),
    ):
        note(f"refused upload {name} {len(content)}", people.upload("olga", name, content))
    for name, query in QUERIES.items():
        body = {"dataset": name, "epsilon": "0.5", "query": query}
        note(f"quote {name}", people("ana", "POST", "/v1/quotes", json=body))
        target = {**body, "target": {"score_below_best": 8.0}}
        del target["epsilon"]
        note(f"target {name}", people("ana", "POST", "/v1/quotes", json=target))
        note(f"too dear {name}", people("ana", "POST", "/v1/queries", json=body | {"epsilon": "9"}))
        with monkeypatch.context() as patch:
            fail_in_a_query(patch)
            failed = ask(people, name)
            assert failed.status_code == 500
            note(f"failed {name}", failed)

    with monkeypatch.context() as patch:
        patch.setattr(services_of(people).database, "ready", failing)
        note("unforeseen", people("ana", "GET", "/readyz"))
    ids = [query["id"] for query in people("ana", "GET", "/v1/queries").json()["items"]]
    keys = [people.keys[who].split("_")[1] for who in PEOPLE]
    values = {
        "name": [*FILES, *PEOPLE],
        "dataset": [*FILES],
        "user": ["ana"],
        "query_id": ids,
        "id": keys[:1],
        "page": ["datasets"],
        "slug": ["query-failed"],
        "path": ["nowhere"],
    }
    for where, reply in every_get(people, application, readers, values):
        note(where, reply)
    note("/metrics", people.client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}))
    logged = "".join(capsys.readouterr())
    outputs |= {f"log {number}": line for number, line in enumerate(logged.splitlines())}
    return outputs


def failing(*_: Any, **__: Any) -> Any:
    raise LookupError(f"{CELL} {REFUSED_NODE} among {ROWS} rows, {EDGES} edges")


def services_of(people: Service) -> Services:
    services: Services = people.client.app.state.services  # type: ignore[attr-defined]
    return services


def fail_in_a_query(patch: pytest.MonkeyPatch) -> None:
    """An exception while the arrays are open, whose text quotes a record."""
    patch.setattr(Selection, "compute", failing)


def test_no_canary_is_told(
    planted: Service, application: FastAPI, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    outputs = everything_told(planted, application, monkeypatch, capsys)
    assert {where: sung(text) for where, text in outputs.items() if sung(text)} == {}
    # An empty output would hide every leak. So every role must have read pages and replies, and the
    # log must have lines.
    for who in PEOPLE:
        assert sum(f" {who} 200" in where for where in outputs) > 10, who
    assert sum(where.startswith("log") for where in outputs) > 100
    assert "privypurse_requests_total" in outputs["/metrics 200"]
    assert any('"error": "LookupError"' in text for text in outputs.values())


def in_a_description(people: Service, _: pytest.MonkeyPatch) -> None:
    people.dataset("olga", name="third", description=f"holds {ROWS:,} rows")


def in_a_log_line(_: Service, patch: pytest.MonkeyPatch) -> None:
    written = logs.Lines.msg
    patch.setattr(logs.Lines, "msg", lambda self, line: written(self, f"{line} edges {EDGES}"))


def in_a_metric(people: Service, _: pytest.MonkeyPatch) -> None:
    services_of(people).metrics.observe("GET", f"/v1/{REFUSED_NODE}", 200, 0.1)


def in_a_failure(_: Service, patch: pytest.MonkeyPatch) -> None:
    def quoting(query_id: Any) -> bytes:
        return json.dumps({"id": str(query_id), "detail": f"at {CELL}"}).encode()

    patch.setattr(attempts, "query_failed_body", quoting)


def in_a_quote(_: Service, patch: pytest.MonkeyPatch) -> None:
    constructor = QuoteOut.__init__

    def counting(self: Any, **fields: Any) -> None:
        constructor(self, **{**fields, "accuracy": {"rows": ROWS}})

    patch.setattr(QuoteOut, "__init__", counting)


#: The seeded leaks: each with the start of the name of the output that shows it, and with the
#: planted value.
SEEDS: dict[Callable[[Service, pytest.MonkeyPatch], None], tuple[str, str]] = {
    in_a_description: ("GET /v1/datasets olga 200", "rows"),
    in_a_log_line: ("log ", "edges"),
    in_a_metric: ("/metrics 200", REFUSED_NODE),
    in_a_failure: ("failed ring 500", CELL),
    in_a_quote: ("quote ring 200", "rows"),
}


def test_every_seeded_leak_is_heard_where_it_is(
    planted: Service, application: FastAPI, monkeypatch: pytest.MonkeyPatch, capsys: Shown
) -> None:
    for seed in SEEDS:
        seed(planted, monkeypatch)
    # The outputs of one reader are enough to find these leaks; the test above reads as every role.
    outputs = everything_told(planted, application, monkeypatch, capsys, ["olga"])
    for seed, (source, canary) in SEEDS.items():
        heard = [canary in sung(text) for at, text in outputs.items() if at.startswith(source)]
        assert any(heard), seed.__name__


def test_a_cell_is_heard_however_it_is_written() -> None:
    whole, _, fraction = CELL.partition(".")
    assert sung(CELL) == {CELL, whole}
    assert sung(f"at {float(CELL)!r}") == sung(f"{float(CELL):.0f}") == {whole}
    assert sung(f"{float(CELL):g}") == sung(f"{float(CELL):.9e}") == {"rounded cell"}
    # The first digits of the planted cell may occur by chance in an id, a hash or a time in
    # nanoseconds.
    for text in ("f8c4482135b2fb55", "sha256:9c48213d", "1763848213577901335", fraction):
        assert sung(text) == set(), text


def test_a_number_is_heard_however_it_is_written() -> None:
    for text in (f"{ROWS} rows", f"({ROWS:,})", f'"rows":{ROWS}', f"{ROWS}.0", f"<b>{ROWS}</b>"):
        assert sung(text) == {"rows"}, text
    for text in (f"1{ROWS}", f"0.{ROWS}", f"{ROWS}.5", f"ab{ROWS}", "2026-11-21T20:31:19.003119Z"):
        assert sung(text) == set(), text
