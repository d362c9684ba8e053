"""A service whose prepared records are in a store: as ever, and closed when the store is gone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("s3fs", reason="needs the extra `s3`")
pytest.importorskip("moto", reason="needs the extra `test`")

from pydantic import ValidationError

from app.settings import Settings
from storage import objects
from tests.app.conftest import EDGES, Service
from tests.app.test_datasets import problem
from tests.stores import KEY, StoreProcess, store_process

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


@pytest.fixture
def server() -> Iterator[StoreProcess]:
    """Of each test: one of them kills it."""
    with store_process() as process:
        yield process


@pytest.fixture
def settings(settings: Settings, server: StoreProcess) -> Settings:
    values = {
        name.removeprefix("PURSE_").lower(): value
        for name, value in server.settings(server.address()).items()
    }
    return Settings(**settings.model_dump(exclude={"store"}) | values)


def ask(people: Service, key: str) -> Any:
    headers = {"Idempotency-Key": key}
    return people("ana", "POST", "/v1/queries", json=QUERY, headers=headers)


def test_records_are_in_the_store_until_they_are_withdrawn(
    people: Service, settings: Settings, server: StoreProcess
) -> None:
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    assert ask(people, "first").status_code == 201
    stored = server.objects(settings.store).names("")
    assert {name.partition("/")[0] for name in stored} == {"arrays", "datasets"}
    assert "datasets/1/1" in stored
    # Nothing that a process could not do without is on its own disk.
    assert not any((settings.data / "incoming").iterdir())
    assert not any((settings.data / "datasets" / "1").iterdir())
    shutil.rmtree(settings.data / "store")
    assert people.upload("olga", name, EDGES + b"0,4\n").json()["version"] == 2
    assert ask(people, "second").status_code == 201
    assert people("olga", "DELETE", f"/v1/datasets/{name}/records").status_code == 204
    assert server.objects(settings.store).names("") == {}
    assert [path for path in (settings.data / "store").rglob("*") if path.is_file()] == []


def test_without_the_store_uploads_fail_and_queries_are_charged(
    people: Service, settings: Settings, server: StoreProcess
) -> None:
    name = people.dataset("olga")
    people.grant("olga", name, "ana")
    shutil.rmtree(settings.data / "store")
    server.kill()
    failed = ask(people, "lost")
    assert problem(failed) == (500, "query-failed")
    assert ask(people, "lost").content == failed.content
    spent = people("ana", "GET", "/v1/budgets").json()["items"][0]["spent"]["epsilon"]
    assert spent == "0.1"
    upload = people.upload("olga", name, EDGES)
    assert problem(upload) == (503, "busy")
    detail = "the store of prepared records cannot be used now (EndpointConnectionError)"
    assert upload.json()["detail"] == detail
    shown = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert (shown["status"], shown["version"]) == ("refused", 1)
    assert shown["upload"]["errors"][0]["type"] == "store-unavailable"
    assert not any((settings.data / "incoming").iterdir())
    # At once, not after a lease: the upload that failed holds nobody up.
    assert problem(people.upload("olga", name, EDGES)) == (503, "busy")


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


def test_attempts_are_few_and_short() -> None:
    files = objects.ObjectStore("s3://records", endpoint="http://127.0.0.1:9", **KEY)._files
    assert files.config_kwargs["connect_timeout"] * files.retries <= 10
    assert files.config_kwargs["read_timeout"] * files.retries <= 40
