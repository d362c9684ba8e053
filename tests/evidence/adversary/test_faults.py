"""Faults of the machine at every step: a refusal is free, and a charge is answered by its key.

No fault ever becomes an answer. ``query-failed`` is for exceptions of the work alone.
"""

from __future__ import annotations

import errno
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import select, update

from app.config.settings import Settings
from app.main import create_app
from app.usecases.services import Services
from storage.database.database import Database
from storage.database.tables import query
from tests.support.faults import failing_calls, few_descriptors
from tests.support.patience import until
from tests.support.service import Service

TABLE = {
    "name": "t",
    "kind": "table",
    "neighbouring": "add_remove",
    "max_rows": 100,
    "attributes": [
        {"name": "sex", "kind": "categorical", "values": ["F", "M"]},
        {"name": "age", "kind": "numeric", "bounds": [0, 100], "bins": 10},
    ],
    "cap": {"epsilon": "100", "delta": "0"},
}
ROWS = b"sex,age\nF,30\nM,40\nF,50\n"
COUNT = {"kind": "statistic", "statistic": "count"}
#: A selection is a heavy query: it needs a thread and compiled kernels, unlike a light query.
SELECTION = {"kind": "selection", "utilities": [{"name": "degree"}]}
EACH = 0.01


@pytest.fixture
def unasked(people: Service) -> Service:
    """A graph and a table with allowances."""
    people.dataset("olga", cap={"epsilon": "100", "delta": "0"})
    reply = people("olga", "POST", "/v1/datasets", json=TABLE)
    assert reply.status_code == 201, reply.text
    assert people.upload("olga", "t", ROWS).status_code == 201
    for name in ("triangle", "t"):
        assert people.grant("olga", name, "ana", "50").status_code == 200
    return people


@pytest.fixture
def shop(unasked: Service) -> Service:
    """The same after a query of each."""
    for name in ("triangle", "t"):
        assert ask(unasked, f"warm-{name}", name).status_code == 201
    return unasked


def ask(shop: Service, key: str, name: str) -> httpx.Response:
    body = {
        "dataset": name,
        "epsilon": str(EACH),
        "query": COUNT if name == "t" else SELECTION,
    }
    return shop("ana", "POST", "/v1/queries", json=body, headers={"Idempotency-Key": key})


def services_of(application: FastAPI) -> Services:
    state: Services = application.state.services
    return state


def kind_of(reply: httpx.Response) -> tuple[int, str]:
    type = "" if reply.is_success else reply.json()["type"].rpartition("/")[2]
    return reply.status_code, type


def spent(shop: Service, name: str) -> float:
    items = shop("ana", "GET", "/v1/budgets").json()["items"]
    return float(next(one for one in items if one["dataset"] == name)["spent"]["epsilon"])


def check_what_remains(application: FastAPI, shop: Service, keys: dict[str, str]) -> None:
    """Every charge belongs to a query whose key answers now, under that charge alone."""
    database = services_of(application).database
    late = update(query).where(query.c.state == 0).values(lease_until=0)
    database.write(lambda connection: connection.execute(late))
    with database.read() as connection:
        rows = connection.execute(select(query.c.idem_key, query.c.answer_status)).all()
    assert {row.answer_status for row in rows} <= {None, 201}, "a fault became an answer"
    charged = {row.idem_key for row in rows}
    for key, name in keys.items():
        before = spent(shop, name)
        reply = ask(shop, key, name)
        assert reply.status_code == 201, (key, reply.text)
        added = 0 if key in charged else EACH
        assert spent(shop, name) == pytest.approx(before + added), key
        again = ask(shop, key, name)
        assert (again.status_code, again.content) == (201, reply.content)


#: The replies that a query may get if a step on the machine fails: the status and the type of the
#: problem.
ALLOWED = {
    (201, ""),
    (503, "busy"),
    (500, "internal-error"),
    (409, "still-running"),
    (503, "outcome-unknown"),
}


def forget_connections(database: Database) -> None:
    """Connections that the service keeps must not hide where it opens new ones."""
    while database._readers:
        database._readers.pop().invalidate()
    database._drop_writer()
    database.engine.dispose()


@pytest.mark.parametrize("name", ["t", "triangle"])
def test_without_descriptors_no_query_fails(application: FastAPI, shop: Service, name: str) -> None:
    keys, outcomes = {}, []
    for free in range(8):
        key = f"{name}-{free}"
        keys[key] = name
        forget_connections(services_of(application).database)
        with few_descriptors(free):
            reply = ask(shop, key, name)
        assert kind_of(reply) in ALLOWED, reply.text
        outcomes.append(reply.status_code)
    assert outcomes[0] == 503, "the first had no descriptor"
    assert outcomes[-1] == 201, "the last had descriptors enough"
    check_what_remains(application, shop, keys)


def test_a_query_in_flow_takes_no_descriptor(shop: Service) -> None:
    """Everything that a query needs exists before its charge."""
    for name in ("t", "triangle"):
        with few_descriptors(0):
            assert ask(shop, f"none-{name}", name).status_code == 201


def test_no_query_starts_a_thread(unasked: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even the first one: all threads exist before its charge."""

    def start(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    for number, name in enumerate(("triangle", "t") * 5):
        assert ask(unasked, f"none-{number}", name).status_code == 201


@contextmanager
def full_ledger(services: Services, pages: int) -> Iterator[None]:
    """The database file can grow by ``pages`` pages more."""
    database = services.database

    def limit(most: int) -> None:
        transaction = database.begin(wait=True)
        driver: Any = transaction.connection.connection.driver_connection
        driver.execute(f"PRAGMA max_page_count = {most}")
        transaction.rollback()

    with database.read() as connection:
        used = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    limit(used + pages)
    try:
        yield
    finally:
        limit(1_000_000)


def test_with_a_full_ledger_no_query_fails(application: FastAPI, shop: Service) -> None:
    keys, refused = {}, 0
    for number in range(60):
        key = f"full-{number}"
        keys[key] = "t"
        with full_ledger(services_of(application), number % 3):
            reply = ask(shop, key, "t")
        assert kind_of(reply) in ALLOWED, reply.text
        refused += reply.status_code == 503
    assert refused, "the ledger was never full"
    check_what_remains(application, shop, keys)


def uploaded(shop: Service, name: str) -> tuple[int, int]:
    """The current version of a dataset, and the number of files that wait for a preparation."""
    version = shop("olga", "GET", f"/v1/datasets/{name}").json()["version"]
    waiting = list((shop.settings.data / "incoming").iterdir())
    return int(version), len(waiting)


def steps(total: int, step: int) -> list[int]:
    return [*range(0, total, step), total - 1]


@pytest.mark.parametrize(
    "step", [pytest.param(9, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_an_upload_without_room_is_refused(shop: Service, number: int, step: int) -> None:
    """503 at every step, or published whole. The earlier version answers meanwhile."""
    with failing_calls(shop.settings.data, number) as calls:
        assert shop.upload("olga", "t", ROWS).status_code == 201
        total = calls.count
        refused = 0
        for failing in steps(total, step):
            before, _ = uploaded(shop, "t")
            calls.count, calls.failing = 0, failing
            reply = shop.upload("olga", "t", ROWS)
            calls.failing = None
            after, waiting = uploaded(shop, "t")
            assert kind_of(reply) in {(201, ""), (503, "busy")}, (failing, reply.text)
            assert after == before + (reply.status_code == 201)
            assert waiting == 0
            refused += reply.status_code == 503
            assert ask(shop, f"during-{failing}", "t").status_code == 201
    assert refused > len(steps(total, step)) / 2
    # A failed upload may be unable to remove its staging folder. The sweep removes the folder when
    # it is old.
    folders = shop.settings.data / "datasets"
    for folder in folders.glob("*/staging-*"):
        os.utime(folder, (0, 0))
    shop.client.app.state.services.versions.sweep()
    assert not list(folders.glob("*/staging-*"))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_a_node_list_without_room_is_refused(shop: Service, number: int) -> None:
    """503 at every step, and then it is taken as if nothing had been sent before."""
    shop.dataset("olga", None, name="named")
    failing = 0
    with failing_calls(shop.settings.data, number) as calls:
        while True:
            calls.count, calls.failing = 0, failing
            reply = shop(
                "olga",
                "PUT",
                "/v1/datasets/named/nodes",
                content=b"ada\nbob\neve\njoe\nmia\n",
                headers={"Content-Type": "text/csv"},
            )
            calls.failing = None
            if reply.status_code == 200:
                break
            assert kind_of(reply) == (503, "busy"), failing
            assert reply.headers["Retry-After"]
            failing += 1
    assert failing >= 5


def test_a_full_disk_is_not_ready(shop: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shop.client.get("/readyz").status_code == 200
    monkeypatch.setattr("storage.files.free_space.LEAST_FREE", 2**80)
    assert shop.client.get("/readyz").status_code == 503


@contextmanager
def restarted(settings: Settings, keys: dict[str, str]) -> Iterator[tuple[FastAPI, Service]]:
    application = create_app(settings)
    with TestClient(application, raise_server_exceptions=False) as client:
        again = Service(client, settings)
        again.keys = keys
        until(lambda: client.get("/readyz").status_code == 200)
        yield application, again


def damages(folder: Path) -> Iterator[tuple[str, Path, bytes | None]]:
    """Each file with each damage: a name of it, the file, its new content or None if it is gone."""
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[-2] ^= 0x40
        yield f"{path.name} flipped", path, bytes(flipped)
        yield f"{path.name} cut", path, whole[:-1]
        yield f"{path.name} empty", path, b""
        yield f"{path.name} gone", path, None


def search(services: Services) -> None:
    """What the service does on its schedule, at once."""
    services.opener._failures.clear()
    services.opener._search()


def test_damaged_and_missing_files_are_never_served(application: FastAPI, shop: Service) -> None:
    """Their dataset is 503, free; the others answer, and the gauge tells the operator."""
    services = services_of(application)
    id = services.datasets.find("t").id
    folder = shop.settings.data / "datasets" / str(id) / "1"
    assert len(list(folder.iterdir())) > 4
    before = spent(shop, "t")
    # The service's own periodic search for damaged files is stopped. It could run while the test
    # has put the whole file back.
    services.opener._repeated.close()
    for what, path, content in list(damages(folder)):
        whole = path.read_bytes()
        path.unlink()
        if content is not None:
            path.write_bytes(content)
        services.versions.opened.forget(id, 1)
        search(services)
        assert kind_of(ask(shop, what, "t")) == (503, "busy"), what
        assert services.opener.missing() == 1
        path.write_bytes(whole)
    assert spent(shop, "t") == before
    assert ask(shop, "other", "triangle").status_code == 201
    search(services)
    assert services.opener.missing() == 0
    assert ask(shop, "mended", "t").status_code == 201


def test_a_cell_changed_on_the_disk_moves_no_sum(people: Service, settings: Settings) -> None:
    """A cell of 1e300 would move a sum with bounds 0 and 100 by any amount."""
    assert people("olga", "POST", "/v1/datasets", json=TABLE).status_code == 201
    assert people.upload("olga", "t", ROWS).status_code == 201
    people.grant("olga", "t", "ana", "50")
    people.client.__exit__(None, None, None)
    folder = settings.data / "datasets" / "1" / "1"
    entries = json.loads((folder / "manifest.json").read_bytes())["arrays"]
    (file,) = [entry["file"] for entry in entries if entry["name"] == "values:age"]
    content = bytearray((folder / file).read_bytes())
    # The last byte holds most of the exponent of the last number, which becomes huge.
    content[-1] = 0x7E
    (folder / file).write_bytes(content)
    with restarted(settings, people.keys) as (_, again):
        body = {
            "dataset": "t",
            "epsilon": "1",
            "query": {"kind": "statistic", "statistic": "sum", "attribute": "age"},
        }
        assert kind_of(again("ana", "POST", "/v1/queries", json=body)) == (503, "busy")
        assert spent(again, "t") == 0
