"""The service as a process: it starts, stops, crashes and starts again without losing a charge."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import httpx

from app.demo.service import ServiceProcess
from tests.process.session import Session
from tests.support.patience import REPLY

Start = Callable[[], ServiceProcess]


def test_the_first_start_leaves_one_admin_key_and_the_second_none(start: Start) -> None:
    service = start().wait_ready()
    assert httpx.get(service.url + "/healthz", timeout=REPLY).status_code == 200
    file = service.data / "bootstrap-admin.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = file.read_text("utf-8")
    assert key.strip().startswith("pp_")
    assert len(key.split()) == 1
    log = service.log.read_text("utf-8")
    assert str(file) in log
    assert key.strip() not in log
    assert who(service, key.strip()).json()["roles"] == ["admin"]
    assert service.stop() == 0

    file.unlink()
    service = start().wait_ready()
    assert not file.exists()
    assert who(service, key.strip()).status_code == 200


def who(service: ServiceProcess, key: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(service.url + "/v1/me", headers=headers, timeout=REPLY)


def test_two_processes_starting_at_once_make_one_admin(start: Start) -> None:
    one, two = start(), start()
    one.wait_ready()
    two.wait_ready()
    headers = {"Authorization": f"Bearer {one.admin_key}"}
    for service in (one, two):
        users = httpx.get(service.url + "/v1/users", headers=headers, timeout=REPLY).json()["items"]
        assert [user["roles"] for user in users] == [["admin"]]
        keys = httpx.get(
            f"{service.url}/v1/users/{users[0]['name']}/keys", headers=headers, timeout=REPLY
        )
        assert len(keys.json()["items"]) == 1
    assert one.stop() == 0
    assert two.stop() == 0


def test_a_crash_forgets_neither_charge_nor_answer(start: Start) -> None:
    session = Session.open(start().wait_ready())
    first = session.query("one")
    assert first.status_code == 201
    session.service.kill()

    session.service = start().wait_ready()
    assert session.spent() == "0.5"
    again = session.query("one")
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert session.query("two").status_code == 201
    assert session.spent() == "1"
    assert open_to_others(session.service.data) == []


def open_to_others(folder: Path) -> list[Path]:
    """What is in a data folder for other users than that of the service."""
    everything = (folder, *folder.rglob("*"))
    assert len(everything) > 5
    return [path for path in everything if stat.S_IMODE(path.stat().st_mode) & 0o077]
