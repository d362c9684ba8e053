"""A service with deadlines accepts no query before all kernels are loaded."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numba.core.dispatcher import Dispatcher
from structlog.testing import capture_logs

from accounting.privacy_loss import NANO, PrivacyLoss
from app.config.settings import Settings
from app.demo.service import ROOT
from app.engine import attempts, warm_up
from app.engine.warm_up import WarmUp
from app.main import create_app
from app.queries import QUERY as QUERIES
from app.queries import QUERY_KINDS, QueryContext
from app.queries.parts.cost import Speeds
from app.service import speeds, warm
from app.service.made_up import stored
from app.service.speeds import MachineSpeeds
from mechanisms.model.domains import Dataset, TableDomain
from mechanisms.model.executor import Inline
from mechanisms.model.level_tables import stored_tables
from mechanisms.model.records import TableRecords
from mechanisms.noise.keystream import SystemRandomness as Coins
from tests.support.patience import PATIENCE, until
from tests.support.service import Service
from tests.unit.app.routes.test_ledger import QUERY


class Gate:
    """Steps of a warm-up that go on when a test lets them."""

    def __init__(self) -> None:
        self.open, self.taken = threading.Event(), 0

    def steps(self) -> Iterator[None]:
        for _ in range(3):
            self.taken += 1
            yield
            assert self.open.wait(PATIENCE)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    """A process that has just started, and whose kernels load as long as the gate is shut."""
    gate = Gate()
    monkeypatch.setattr(warm, "LOADED", threading.Event())
    monkeypatch.setattr(warm, "steps", gate.steps)
    # The first query loads kernels while it runs, which takes seconds on a busy machine. So it may
    # miss many deadlines.
    monkeypatch.setattr(attempts, "MOST_MISSES", 20)
    yield gate
    gate.open.set()


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    interval = getattr(request, "param", 0.025)
    return settings.model_copy(update={"release_interval": interval})


def test_queries_are_refused_free_of_charge_until_kernels_are_loaded(
    gate: Gate, people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_up, "PATIENCE", 0.0)
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    body = {"dataset": "triangle", "epsilon": "0.1", "query": QUERY}
    reply = people(None, "GET", "/readyz")
    assert (reply.status_code, reply.json()) == (503, {"status": "warming_up"})
    assert people(None, "GET", "/healthz").status_code == 200
    sent = {"json": body, "headers": {"Idempotency-Key": "k"}}
    reply = people("ana", "POST", "/v1/queries", **sent)
    assert (reply.status_code, reply.json()["type"]) == (503, "/problems/busy")
    assert reply.headers["Retry-After"] == "5"
    assert people.spent() == "0"
    assert people("ana", "GET", "/v1/queries").json()["items"] == []
    gate.open.set()
    until(lambda: people(None, "GET", "/readyz").status_code == 200)
    assert people("ana", "POST", "/v1/queries", **sent).status_code == 201
    # A second service in the same process finds the kernels loaded.
    with TestClient(people.client.app) as second:
        until(lambda: second.get("/readyz").status_code == 200)
    assert gate.taken == 3


def test_a_query_waits_for_the_kernels(gate: Gate, people: Service) -> None:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    threading.Timer(0.2, gate.open.set).start()
    body = {"dataset": "triangle", "epsilon": "0.1", "query": QUERY}
    assert people("ana", "POST", "/v1/queries", json=body).status_code == 201


def test_collections_of_garbage_visit_no_object_of_the_warm_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A collection that visits all kernels would stop every query for a fifth of a second."""
    kernels = [[] for _ in range(10_000)]  # type: ignore[var-annotated]
    monkeypatch.setattr(warm, "LOADED", threading.Event())
    monkeypatch.setattr(warm, "steps", lambda: iter([None]))
    try:
        for _ in warm.load():
            assert len(gc.get_objects()) >= len(kernels)
        assert len(gc.get_objects()) < len(kernels)
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("settings", [0.0], indirect=True)
def test_without_deadlines_nothing_waits(gate: Gate, people: Service) -> None:
    assert people(None, "GET", "/readyz").json() == {"status": "ready"}
    assert gate.taken == 0


def test_a_service_stops_while_it_warms_up(gate: Gate, settings: Settings) -> None:
    with TestClient(create_app(settings)):
        until(lambda: gate.taken == 1)
        gate.open.set()
    assert not any(thread.name == "warm-up" for thread in threading.enumerate())


def test_a_failed_warm_up_is_logged_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "FIRST", 0.0)
    tries: list[Callable[[], object]] = [lambda: 1 / 0, lambda: None]

    def steps() -> Iterator[object]:
        yield tries.pop(0)()

    warming = WarmUp(steps, lambda: not tries)
    with capture_logs() as lines:
        warming.start()
        until(warming.is_ready)
        warming.close()
    assert not tries
    assert [line.get("error") for line in lines] == ["ZeroDivisionError", None]
    assert lines[-1]["event"] == "all kernels are loaded"


@pytest.mark.parametrize("settings", [0.0, 0.025], indirect=True)
def test_a_service_listens_while_it_measures_the_machine(
    people: Service, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    measuring = Gate()

    def measure() -> Generator[None, None, Speeds]:
        yield from measuring.steps()
        return current

    current = MachineSpeeds().current
    assert current is not None
    monkeypatch.setattr(speeds, "measure", measure)
    monkeypatch.setattr(speeds, "FILE", "speeds_of_nobody.json")
    monkeypatch.setattr(speeds, "_write", lambda *_: None)
    monkeypatch.setattr(warm_up, "PATIENCE", 0.0)
    people.dataset("olga")
    people.grant("olga", "triangle", "ana")
    body = {"dataset": "triangle", "epsilon": "0.1", "query": QUERY}
    with TestClient(create_app(settings)) as second, ExitStack() as closing:
        service = Service(second, settings)
        service.keys = people.keys
        closing.callback(measuring.open.set)
        until(lambda: service(None, "GET", "/readyz").json() == {"status": "warming_up"})
        assert service(None, "GET", "/readyz").headers["Retry-After"] == "5"
        for path in ("/v1/quotes", "/v1/queries"):
            refused = service("ana", "POST", path, json=body)
            assert (refused.status_code, refused.json()["type"]) == (503, "/problems/busy")
        assert service.spent() == "0"
        measuring.open.set()
        until(lambda: second.get("/readyz").status_code == 200)
        assert service("ana", "POST", "/v1/queries", json=body).status_code == 201


@pytest.mark.long
def test_queries_of_stored_tables_find_all_kernels_loaded() -> None:
    """In a process of its own, because other tests load kernels too."""
    code = f"from {__name__} import loaded_later; print(loaded_later())"
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "client")))
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == "[]", ran.stdout + ran.stderr


def loaded_later() -> list[str]:
    """The kernels that queries of stored tables load anew after the warm-up.

    Preparation stores the counts of one and two attributes, and the warm-up has rows alone.
    """
    warm.warm()
    loaded = signatures()
    for one, described in warm.stored_types():
        if isinstance(one, TableRecords):
            records, dataset = with_tables(one, described)
            for body in bodies(dataset):
                query = QUERIES.validate_json(json.dumps(body))
                loss = PrivacyLoss(NANO, query.delta_atto())
                query.compute(QueryContext(records, dataset, loss, Coins(), Inline()))
    return [name for name, types in signatures().items() if types - loaded.get(name, frozenset())]


def bodies(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for kind in QUERY_KINDS.values():
        yield from kind.examples.every(dataset)


def with_tables(records: TableRecords, dataset: Dataset) -> tuple[TableRecords, Dataset]:
    assert isinstance(dataset.domain, TableDomain)
    domain = replace(dataset.domain, level_cells=1 << 16)
    tables = {}
    for names, shape in stored_tables(domain).items():
        counts = np.zeros(shape, np.int64)
        np.add.at(counts, tuple(records.codes[name] for name in names), 1)
        tables[names] = stored(counts, np.int64)
    assert tables
    return replace(records, tables=tables), replace(dataset, domain=domain)


def signatures() -> dict[str, frozenset[Any]]:
    """The types of arguments for which each kernel of this process is loaded."""
    return {
        f"{name}.{kernel}": frozenset(of.signatures)
        for name, module in list(sys.modules.items())
        if name.startswith("mechanisms.")
        for kernel, of in vars(module).items()
        if isinstance(of, Dispatcher)
    }
