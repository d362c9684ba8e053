"""Uploads that run concurrently, are stopped, fail or are interrupted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.config.settings import Settings
from app.engine import upload_recovery, uploads
from app.main import create_app
from storage.catalogue import versions
from storage.errors import Busy
from storage.records.preparation import prepare_upload
from storage.records.tickets import Ticket
from tests.support.patience import until
from tests.support.service import EDGES, Service
from tests.unit.app.routes.test_datasets import problem


class Gate:
    """A preparation that reports progress until ``go`` is set, and then runs."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.begun.set()
        while not self.go.wait(0.01):
            options["progress"](0.5)
        return prepare_upload(*args, **options)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    preparation = Gate()
    monkeypatch.setattr(uploads, "prepare_upload", preparation)
    yield preparation
    preparation.go.set()


def leftovers(settings: Settings) -> list[str]:
    folders = (*settings.data.glob("incoming/*"), *settings.data.glob("datasets/*/staging-*"))
    return [path.name for path in folders]


def test_one_upload_at_a_time_to_one_dataset(people: Service, gate: Gate) -> None:
    name = people.dataset("olga", records=None)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(people.upload, "olga", name, EDGES)
        assert gate.begun.wait(60)
        assert people("olga", "GET", f"/v1/datasets/{name}").json()["status"] == "preparing"
        assert people("otto", "GET", f"/v1/datasets/{name}").json()["status"] == "empty"
        second = people.upload("olga", name, EDGES)
        assert problem(second) == (409, "upload-running")
        assert int(second.headers["retry-after"]) > 0
        gate.go.set()
        assert first.result().json()["version"] == 1
    assert leftovers(people.settings) == []


def test_a_withdrawal_stops_what_is_being_prepared(people: Service, gate: Gate) -> None:
    name = people.dataset("olga", records=None)
    with ThreadPoolExecutor(1) as pool:
        upload = pool.submit(people.upload, "olga", name, EDGES)
        assert gate.begun.wait(60)
        assert people("olga", "DELETE", f"/v1/datasets/{name}/records").status_code == 204
        gate.go.set()
        assert problem(upload.result()) == (409, "no-records")
    dataset = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert (dataset["status"], dataset["version"]) == ("refused", 0)
    assert leftovers(people.settings) == []


def test_a_stopped_service_gives_its_uploads_up_and_says_so(settings: Settings, gate: Gate) -> None:
    impatient = settings.model_copy(update={"upload_wait": 0})
    with TestClient(create_app(impatient)) as client:
        service = Service(client, impatient)
        service.user("olga", "owner")
        name = service.dataset("olga", records=None)
        assert service.upload("olga", name, EDGES).status_code == 202
        assert gate.begun.wait(60)
        keys = service.keys
    assert leftovers(settings) == []
    with TestClient(create_app(impatient)) as client:
        service = Service(client, impatient)
        service.keys = keys
        dataset = service("olga", "GET", f"/v1/datasets/{name}").json()
    assert (dataset["status"], dataset["version"]) == ("refused", 0)
    assert dataset["upload"]["errors"][0]["type"] == "stopped"


def test_a_failure_of_the_service_is_no_fault_of_the_records(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret record")

    name = people.dataset("olga", records=None)
    monkeypatch.setattr(uploads, "prepare_upload", broken)
    reply = people.upload("olga", name, EDGES)
    assert problem(reply) == (500, "internal-error")
    dataset = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert dataset["upload"]["errors"][0]["type"] == "internal-error"
    assert "secret" not in reply.text + str(dataset["upload"])
    assert leftovers(people.settings) == []


def test_a_client_that_goes_away_leaves_nothing(people: Service) -> None:
    name = people.dataset("olga", records=None)
    messages = [
        {"type": "http.request", "body": b"source,target\n0,1\n" * 100_000, "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "PUT",
        "path": f"/v1/datasets/{name}/records",
        "raw_path": b"",
        "query_string": b"",
        "headers": [
            (b"authorization", f"Bearer {people.keys['olga']}".encode()),
            (b"content-type", b"text/csv"),
        ],
    }
    portal = people.client.portal
    assert portal is not None
    portal.call(people.client.app, scope, receive, send)
    assert sent == []
    assert leftovers(people.settings) == []
    assert people("olga", "GET", f"/v1/datasets/{name}").json()["status"] == "empty"


def test_head_is_get_without_content(people: Service) -> None:
    for path in ("/healthz", "/v1/me"):
        got, head = (people("olga", method, path) for method in ("GET", "HEAD"))
        assert head.status_code == got.status_code == 200
        assert head.headers["content-length"] == got.headers["content-length"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead process is missed at once."""
    monkeypatch.setattr(upload_recovery, "SEARCH", 0.05)
    monkeypatch.setattr(upload_recovery, "TIDY", 1)
    monkeypatch.setattr(versions, "UPLOAD_LEASE_US", 3_000_000)


def left_by_a_dead_process(people: Service, name: str, attempts: int = 1) -> int:
    """The state of an upload whose process died during the preparation."""
    services = people.client.app.state.services  # type: ignore[attr-defined]
    owner = services.users.find("olga")
    file = people.settings.data / "incoming" / ("0" * 32)
    file.write_bytes(EDGES)
    ticket = Ticket(name, "olga", file.name, "text/csv", False, attempts)
    upload: int = services.versions.begin_upload(name, actor=owner)
    assert not services.versions.claim_upload(upload), "its process lives for a lease"
    services.files.tickets.leave(upload, ticket)
    until(lambda: services.files.tickets.find(upload) is None)
    return upload


@pytest.mark.long
def test_a_ticket_that_nobody_can_read_is_given_up_and_the_next_one_is_not(
    quick: None,  # noqa: ARG001 - before the service starts
    people: Service,
) -> None:
    services = people.client.app.state.services  # type: ignore[attr-defined]
    owner, tickets = services.users.find("olga"), people.settings.data / "incoming"
    for name, written in (("one", b'{"of": "another version"}'), ("two", b"{")):
        people.dataset("olga", records=None, name=name)
        upload = services.versions.begin_upload(name, actor=owner)
        (tickets / f"upload-{upload}").write_bytes(written)
    name = people.dataset("olga", records=None)
    left_by_a_dead_process(people, name)
    for each, status in (("one", "refused"), ("two", "refused"), (name, "ready")):
        assert people("olga", "GET", f"/v1/datasets/{each}").json()["status"] == status
    assert leftovers(people.settings) == []


def test_a_sign_of_life_that_fails_is_given_again(
    monkeypatch: pytest.MonkeyPatch, people: Service
) -> None:
    services, renewals, go_on = people.client.app.state.services, [], threading.Event()  # type: ignore[attr-defined]
    prepare = uploads.prepare_upload

    def slow(*arguments: Any, **options: Any) -> Any:
        assert go_on.wait(60)
        return prepare(*arguments, **options)

    def busy(*_: Any) -> None:
        renewals.append(1)
        if len(renewals) == 3:
            go_on.set()
        raise Busy("the database is away")

    name = people.dataset("olga", records=None)
    monkeypatch.setattr(uploads, "HEARTBEAT", 0.02)
    monkeypatch.setattr(uploads, "prepare_upload", slow)
    monkeypatch.setattr(services.versions, "keep_upload", busy)
    assert people.upload("olga", name, EDGES).status_code == 201
    assert len(renewals) >= 3


@pytest.mark.long
def test_an_upload_of_a_dead_process_is_finished_by_another(
    quick: None,  # noqa: ARG001 - before the service starts
    people: Service,
) -> None:
    name = people.dataset("olga", records=None)
    left_by_a_dead_process(people, name)
    dataset = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert (dataset["status"], dataset["version"]) == ("ready", 1)
    assert leftovers(people.settings) == []


@pytest.mark.long
def test_what_ends_one_process_after_the_other_is_given_up(
    quick: None,  # noqa: ARG001 - before the service starts
    people: Service,
) -> None:
    name = people.dataset("olga", records=None)
    left_by_a_dead_process(people, name, attempts=upload_recovery.MAX_ATTEMPTS)
    dataset = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert (dataset["status"], leftovers(people.settings)) == ("refused", [])
    assert dataset["upload"]["errors"][0]["type"] == "interrupted"


def test_what_could_not_be_deleted_is_deleted_later(
    quick: None,  # noqa: ARG001 - before the service starts
    people: Service,
) -> None:
    """Deletion fails if a query had the version open, or the disk was unavailable."""
    services = people.client.app.state.services  # type: ignore[attr-defined]
    name = people.dataset("olga")
    stored, owner = services.datasets.find(name), services.users.find("olga")
    assert owner is not None
    folder = services.files.version_folder(stored.id, 1)
    assert folder.is_dir()
    services.versions.withdraw(name, actor=owner)
    until(lambda: not folder.exists())


def test_an_upload_that_cannot_be_left_for_others_is_refused_at_once(
    people: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = people.client.app.state.services  # type: ignore[attr-defined]

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    name = people.dataset("olga", records=None)
    with monkeypatch.context() as patch:
        patch.setattr(services.files.tickets, "leave", full)
        assert people.upload("olga", name, EDGES).status_code == 503
    dataset = people("olga", "GET", f"/v1/datasets/{name}").json()
    assert dataset["status"] == "refused"
    assert leftovers(people.settings) == []
    assert people.upload("olga", name, EDGES).status_code == 201
