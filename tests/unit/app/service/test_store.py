"""A service with its prepared records in an S3 store, and its behaviour without the store."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from fastapi.testclient import TestClient
from pydantic import ValidationError
from typer.testing import CliRunner

from app.cli import cli
from app.config.settings import Settings
from app.engine import upload_recovery
from app.main import create_app
from storage.errors import OtherLedger, StoreFailed
from storage.s3 import cache, objects
from storage.s3.objects import ObjectStore
from tests.support.patience import until
from tests.support.service import EDGES, Service
from tests.support.stores import IMPATIENCE, KEY, StoreProcess, store_process
from tests.unit.app.routes.test_datasets import problem

QUERY: dict[str, Any] = {
    "dataset": "triangle",
    "epsilon": "0.1",
    "query": {
        "kind": "top_k",
        "k": 2,
        "utilities": [{"name": "degree"}],
        "sensitivity": "global",
    },
}


@pytest.fixture(scope="module")
def lasting() -> Iterator[StoreProcess]:
    with store_process() as process:
        yield process


@pytest.fixture
def doomed() -> Iterator[StoreProcess]:
    """A store server for one test, which kills it."""
    with store_process() as process:
        yield process


@pytest.fixture
def server(request: pytest.FixtureRequest) -> StoreProcess:
    store = request.getfixturevalue("doomed" if "doomed" in request.fixturenames else "lasting")
    assert isinstance(store, StoreProcess)
    return store


@pytest.fixture
def settings(settings: Settings, server: StoreProcess) -> Settings:
    values: dict[str, Any] = {
        name.removeprefix("PURSE_").lower(): value
        for name, value in server.settings(server.address()).items()
    }
    # The service looks at the files of versions only once a minute. A test that removes files makes
    # it look earlier.
    values["opening_interval"] = 60
    return Settings(**settings.model_dump(exclude={"store"}) | values)


def ask(people: Service, key: str) -> Any:
    headers = {"Idempotency-Key": key}
    return people("ana", "POST", "/v1/queries", json=QUERY, headers=headers)


@pytest.mark.long
def test_records_are_in_the_store_until_they_are_withdrawn(
    people: Service, settings: Settings, server: StoreProcess
) -> None:
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    assert ask(people, "first").status_code == 201
    stored = server.objects(settings.store).names("")
    assert {name.partition("/")[0] for name in stored} == {"arrays", "ledger"}
    assert any(name.startswith("arrays/1-") for name in stored)
    # The store holds the prepared records. The local disk has only a cache, so another process can
    # replace this one.
    assert not any((settings.data / "incoming").iterdir())
    assert not any((settings.data / "datasets" / "1").iterdir())
    shutil.rmtree(settings.data / "store")
    assert people.upload("olga", name, EDGES + b"0,4\n").json()["version"] == 2
    assert ask(people, "second").status_code == 201
    assert people("olga", "DELETE", f"/v1/datasets/{name}/records").status_code == 204
    assert list(server.objects(settings.store).names("")) == ["ledger"]
    assert [path for path in (settings.data / "store").rglob("*") if path.is_file()] == []


@pytest.mark.long
def test_without_the_store_uploads_fail_and_queries_are_answered(
    people: Service, settings: Settings, doomed: StoreProcess
) -> None:
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    doomed.kill()
    # The version of the dataset is open, so its queries need neither the store nor the cache on
    # disk.
    shutil.rmtree(settings.data / "store")
    reply = ask(people, "mapped")
    assert reply.status_code == 201
    assert ask(people, "mapped").content == reply.content
    services = people.client.app.state.services  # type: ignore[attr-defined]
    services.opener._repeated.wake()
    until(lambda: services.opener.missing() == 1)
    assert problem(ask(people, "lost")) == (503, "busy")
    spent = people("ana", "GET", "/v1/budgets").json()["items"][0]["spent"]["epsilon"]
    assert spent == "0.1"
    upload = people.upload("olga", name, EDGES)
    assert problem(upload) == (503, "busy")
    detail = "the store of prepared records cannot be used now (EndpointConnectionError)"
    assert upload.json()["detail"] == detail
    dataset = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert (dataset["status"], dataset["version"]) == ("refused", 1)
    assert dataset["upload"]["errors"][0]["type"] == "store-unavailable"
    assert not any((settings.data / "incoming").iterdir())
    # The failed upload left no lease behind, so the next upload does not wait and is refused
    # immediately.
    assert problem(people.upload("olga", name, EDGES)) == (503, "busy")


NAMES = {"ids": ["a", "b", "c", "d", "e"]}
LETTERS = b"source,target\na,b\nb,c\nc,a\nd,e\n"


@pytest.mark.long
def test_a_list_of_nodes_that_cannot_be_had_fails_what_needs_it_and_nothing_else(
    people: Service, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its query is refused without charge in a thread; pages and other queries still work."""
    name = people.dataset("olga", LETTERS, nodes=NAMES)
    people.dataset("olga", name="other")
    people.grant("olga", name, "ana")
    services = people.client.app.state.services  # type: ignore[attr-defined]
    edges = QUERY | {"query": {"kind": "statistic", "statistic": "edges"}}
    assert people("ana", "POST", "/v1/queries", json=edges).status_code == 201
    services.datasets._facts.cache_clear()
    shutil.rmtree(settings.data / "store" / "nodes")
    get, threads = ObjectStore.get, []

    def fails(_: ObjectStore, name: str, __: Path) -> None:
        assert name.startswith("nodes/")
        threads.append(threading.current_thread().name)
        raise StoreFailed("the store of prepared records cannot be used now")

    monkeypatch.setattr(ObjectStore, "get", fails)
    datasets = people("olga", "GET", "/v1/datasets").json()["items"]
    assert [one["name"] for one in datasets] == ["other", name]
    assert people("olga", "GET", f"/v1/datasets/{name}").json() == datasets[1] | {"versions": ANY}
    assert datasets[1]["nodes"] == {"count": 5}
    quote = {"dataset": name, "epsilon": "0.1", "query": QUERY["query"]}
    assert people("ana", "POST", "/v1/quotes", json=quote).status_code == 200
    assert people("ana", "GET", "/v1/budgets").status_code == 200
    assert threads == []
    assert problem(ask(people, "first")) == (503, "busy")
    assert len(threads) == 1
    loop = people.client.portal.call(lambda: threading.current_thread().name)  # type: ignore[union-attr]
    assert loop not in threads
    assert people("ana", "POST", "/v1/queries", json=edges).status_code == 201
    spent = people("ana", "GET", "/v1/budgets").json()["items"][0]["spent"]["epsilon"]
    assert spent == "0.2"
    monkeypatch.setattr(ObjectStore, "get", get)
    answer = ask(people, "first").json()["answer"]
    assert set(answer["selected"]) < {*"abcde"}


@pytest.mark.long
def test_what_failed_on_its_way_to_the_store_leaves_nothing_there(
    people: Service, settings: Settings, server: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store may have stored an object although it reported an error."""
    name = people.dataset("olga", records=None)
    put = ObjectStore.put
    for refused in ("incoming/records", "incoming/upload", "arrays/"):

        def fails(self: ObjectStore, path: Path, name: str, start: str = refused) -> None:
            put(self, path, name)
            if name.startswith(start):
                raise StoreFailed("the store of prepared records cannot be used now")

        monkeypatch.setattr(ObjectStore, "put", fails)
        assert problem(people.upload("olga", name, EDGES)) == (503, "busy")
        assert list(server.objects(settings.store).names("")) == ["ledger"]
    monkeypatch.setattr(ObjectStore, "put", put)
    assert people.upload("olga", name, EDGES).status_code == 201


@pytest.mark.long
def test_a_running_service_sweeps(
    settings: Settings, server: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_recovery, "SWEEP", 0.1)
    store = server.objects(settings.store)
    with TestClient(create_app(settings)):
        for _ in range(2):
            store.put(Path(__file__), "incoming/records-7")
            until(lambda: not store.holds("incoming/records-7"))


@pytest.mark.long
def test_readiness_is_that_of_the_store_too(
    settings: Settings, doomed: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica without its store would charge queries that it cannot answer."""
    monkeypatch.setattr(cache, "ASK", 0.1)
    monkeypatch.setattr(cache, "PATIENCE", 2.0)
    with TestClient(create_app(settings)) as client:
        time.sleep(2.5)
        until(lambda: client.get("/readyz").status_code == 200)
        doomed.kill()
        until(lambda: client.get("/readyz").status_code == 503)
        assert client.get("/readyz").json() == {"status": "not_ready"}
        assert client.get("/healthz").status_code == 200


@pytest.mark.long
def test_the_store_of_another_ledger_is_left_alone(
    settings: Settings, server: StoreProcess, tmp_path: Path
) -> None:
    with TestClient(create_app(settings)):
        pass
    store = server.objects(settings.store)
    store.put(Path(__file__), "incoming/records-7")
    other = settings.model_copy(update={"data": tmp_path / "other"})
    with pytest.raises(OtherLedger), TestClient(create_app(other)):
        pass
    assert store.names("").keys() == {"ledger", "incoming/records-7"}


@pytest.mark.long
def test_a_restored_ledger_and_its_store_are_compared(
    people: Service, settings: Settings, server: StoreProcess, tmp_path: Path
) -> None:
    """Files unknown to the ledger are removed, but only after the restore is accepted."""
    environment = {"DATABASE_URL": "", **server.settings(str(settings.store))}

    def run(*command: str, data: Path) -> tuple[int, list[str]]:
        result = CliRunner().invoke(cli, [*command, "--data", str(data)], env=environment)
        return result.exit_code, result.stdout.splitlines()

    name = people.dataset("olga")
    people.dataset("olga", name="kept")
    people.grant("olga", name, "ana")
    compared = run("check-store", data=settings.data)
    assert compared == (0, ["0 files are of nothing in the ledger, and will be removed", "whole"])
    backup = tmp_path / "backup"
    assert run("backup", str(backup), data=settings.data)[0] == 0
    people.upload("olga", name, EDGES + b"0,4\n")
    people.dataset("olga", name="forgotten")
    people.client.__exit__(None, None, None)
    shutil.copy(settings.data / "heads.log", backup / "heads.log")
    stored = server.objects(settings.store).names("")
    lost = f"version 1 of {name} is not in the store"
    frozen = "accounts are frozen: nothing in the store is swept"
    assert run("check-store", data=backup) == (1, [lost, frozen])
    again = settings.model_copy(update={"data": backup})
    with TestClient(create_app(again)):
        assert server.objects(settings.store).names("") == stored
    # The store has equally many files of three versions, and one more file. The restored ledger
    # names one of the versions, so the files of two are counted.
    assert run("accept-rollback", data=backup)[0] == 0
    status, (_, unnamed) = run("check-store", data=backup)
    assert (status, unnamed.partition(" files")[0]) == (1, str((len(stored) - 1) * 2 // 3))
    # The backup lacks the key file of the first admin, whom the ledger names.
    shutil.copy(settings.bootstrap_key_file, again.bootstrap_key_file)
    with TestClient(create_app(again), raise_server_exceptions=False) as client:
        assert len(server.objects(settings.store).names("")) == 1 + (len(stored) - 1) // 3
        service = Service(client, again)
        service.keys = dict(people.keys)
        assert problem(ask(service, "lost")) == (503, "busy")
        assert service.upload("olga", name, EDGES).json()["version"] == 2
        assert ask(service, "found").status_code == 201
    assert run("check-store", data=backup)[1][-1] == "whole"
    people.client.__enter__()


def test_a_service_without_a_store_has_none_to_check(tmp_path: Path) -> None:
    assert CliRunner().invoke(cli, ["check-store", "--data", str(tmp_path)]).exit_code == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"store": "https://records"},
        {"store": "s3://records/../other"},
        {"store": "s3://"},
        {"store_endpoint": "http://store.example"},
        {"store_key": "alone"},
    ],
)
def test_a_store_is_named_whole_and_spoken_to_in_private(changes: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        Settings(**changes)


def test_attempts_are_few_and_short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in zip(("CONNECT", "SILENCE"), IMPATIENCE, strict=True):
        monkeypatch.setattr(objects, name, seconds)
    files = objects.ObjectStore("s3://records", endpoint="http://127.0.0.1:9", **KEY)._files
    assert files.config_kwargs["connect_timeout"] * files.retries <= 10
    assert files.config_kwargs["read_timeout"] * files.retries <= 40
