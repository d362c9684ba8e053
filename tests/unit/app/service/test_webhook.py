"""The operator's webhook: what is sent, when, how it is signed, and what a bad receiver can do."""

from __future__ import annotations

import base64
import hmac
import itertools
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError
from structlog.testing import capture_logs

from app.config.settings import Settings
from app.main import create_app
from app.service import webhook as module
from app.service.webhook import GIVEN_UP_US, LAG_US, MINUTE_US, Webhook, signed_headers
from storage.database.postgresql import TIMEOUTS
from storage.ledger.freezing import freeze
from tests.support.service import Service

KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
PURPOSE = "A report on triangles for the board"
PATH = "/v1/datasets/triangle/requests"


class Receiver:
    """Takes messages on this machine; ``statuses`` are replied in turn, and 204 after them."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.paths: list[str] = []
        self.statuses: list[int] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.paths.append(self.path)
                status = receiver.statuses.pop(0) if receiver.statuses else 204
                if status == 204:
                    receiver.messages.append((dict(self.headers.items()), body))
                self.send_response(status)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/hook?token=hidden"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def events(self) -> list[dict[str, Any]]:
        """The messages so far, each of which must be signed for its own bytes."""
        for headers, body in self.messages:
            signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
            expected = base64.b64encode(hmac.digest(KEY, signed, sha256)).decode()
            assert headers["webhook-signature"] == f"v1,{expected}"
            assert abs(int(headers["webhook-timestamp"]) - time.time()) < 300
        return [json.loads(body) for _, body in self.messages]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    one = Receiver()
    yield one
    one.close()


class Later:
    """A webhook whose clock can be set forward."""

    def __init__(self, service: Service, receiver: Receiver, file: Path) -> None:
        services = service.client.app.state.services  # type: ignore[attr-defined]
        self.ahead_us, self.seconds = 0, 0.0
        self.webhook = Webhook(
            services.database,
            Settings(webhook_url=receiver.address, webhook_secret=SECRET).webhook(),  # type: ignore[arg-type]
            file,
            lambda: services.database.now_us() + self.ahead_us,
            lambda: self.seconds,
        )

    def look(self) -> None:
        """Look for notices and send them now, even if the pause after a failure is not over."""
        self.webhook._not_before = 0.0
        self.webhook.look()


@pytest.fixture
def later(
    people: Service, receiver: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Later]:
    """A webhook that sends a notice immediately, without waiting for the next full minute.

    The notice of a new version of a dataset is due and not sent yet.
    """
    monkeypatch.setattr(module, "MINUTE_US", 1)
    monkeypatch.setattr(module, "LAG_US", 0)
    later = Later(people, receiver, tmp_path / "cursor")
    people.dataset("olga")
    yield later
    later.webhook.close()


def ask(service: Service, epsilon: str) -> None:
    degree = {"kind": "selection", "utilities": [{"name": "degree"}]}
    body = {"dataset": "triangle", "epsilon": epsilon, "query": degree}
    assert service("ana", "POST", "/v1/queries", json=body).status_code == 201


def request(service: Service) -> str:
    reply = service("ana", "POST", PATH, json={"epsilon": "1", "purpose": PURPOSE})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


def test_every_kind_of_notice_is_sent_once_and_says_nothing_of_records(
    people: Service, receiver: Receiver, later: Later
) -> None:
    later.look()
    assert people.grant("olga", "triangle", "ana", "0").status_code == 200
    id = request(people)
    later.look()
    decision = {"decision": "grant", "reason": "Agreed"}
    assert people("olga", "POST", f"{PATH}/{id}/decision", json=decision).status_code == 200
    ask(people, "0.9")
    later.look()
    ask(people, "0.05")
    services = people.client.app.state.services  # type: ignore[attr-defined]
    (account,) = services.ledger.accounts()
    later.look()
    services.database.write(lambda c: freeze(c, [account.id], services.database.now_us()))
    later.look()
    later.look()
    sent = [(one["type"], one["data"]) for one in receiver.events()]
    of = {"dataset": "triangle", "analyst": "ana"}
    low = ("budget_low", {**of, "account": "analyst"})
    assert sent[0] == ("version_ready", {"dataset": "triangle", "version": 1})
    # A notice of a low budget is sent for a new allowance of 0, and for one of which little is
    # left.
    assert sorted(sent[1:3], key=str) == [low, ("request_made", {**of, "request": id})]
    decided = ("request_decided", {**of, "request": id, "decision": "granted"})
    assert sorted(sent[3:5], key=str) == [low, decided]
    assert sent[5:] == [("ledger_frozen", {"dataset": "triangle"})]
    assert len({headers["webhook-id"] for headers, _ in receiver.messages}) == len(sent)
    for one in receiver.events():
        assert set(one) == {"type", "timestamp", "data"}
    assert PURPOSE not in str(receiver.messages)
    assert "Agreed" not in str(receiver.messages)


def test_nothing_is_sent_before_its_minute_has_ended(
    people: Service, receiver: Receiver, tmp_path: Path
) -> None:
    later = Later(people, receiver, tmp_path / "of its own")

    def end_of_minute(time_us: int) -> int:
        return time_us // MINUTE_US * MINUTE_US + MINUTE_US + LAG_US

    before = later.webhook._database.now_us()
    people.dataset("olga")
    # A new minute may have begun while the records were uploaded.
    after = later.webhook._database.now_us()
    later.webhook._now_us = lambda: end_of_minute(before) - 1
    later.webhook.look()
    assert receiver.messages == []
    later.webhook._now_us = lambda: end_of_minute(after)
    later.webhook.look()
    (event,) = receiver.events()
    assert event["type"] == "version_ready"
    assert re.fullmatch(r".*:\d\d:00\+00:00", event["timestamp"])
    later.webhook.close()


def test_a_minute_is_read_when_none_of_its_transactions_can_still_commit() -> None:
    silent, statement = (
        TIMEOUTS[name] for name in ("idle_in_transaction_session_timeout", "statement_timeout")
    )
    assert (silent + statement) * 1000 <= LAG_US


def test_a_limit_that_is_low_once_more_is_told_once_more(
    people: Service, receiver: Receiver, later: Later
) -> None:
    for limit in ("0", "2", "0"):
        assert people.grant("olga", "triangle", "ana", limit).status_code == 200
        later.look()
        # The webhook forgets that it reported a low account as soon as the account is not low any
        # more.
        assert len(later.webhook._done) == (limit == "0")
    low = [one for one in receiver.events() if one["type"] == "budget_low"]
    assert len(low) == 2
    assert len({headers["webhook-id"] for headers, _ in receiver.messages}) == 3


@pytest.mark.parametrize("status", [500, 503, 429, 302])
def test_what_fails_is_sent_again_in_a_later_look(
    receiver: Receiver, later: Later, status: int
) -> None:
    receiver.statuses = [status]
    with capture_logs() as logs:
        later.look()
    assert receiver.messages == []
    assert [(one["event"], one["status"]) for one in logs] == [
        ("the webhook refused a notice", status)
    ]
    later.webhook.look()  # The pause after a failure is not over, so nothing is sent.
    assert len(receiver.paths) == 1
    later.look()
    assert [one["type"] for one in receiver.events()] == ["version_ready"]
    assert set(receiver.paths) == {"/hook?token=hidden"}  # A redirection is not followed.


def test_what_a_receiver_refuses_for_good_holds_nothing_up(
    people: Service, receiver: Receiver, later: Later
) -> None:
    people.dataset("olga", name="square")
    receiver.statuses = [400]
    later.look()
    later.look()
    assert len(receiver.paths) == 2
    (other,) = receiver.events()
    assert other["data"]["dataset"] in ("square", "triangle")


def test_a_receiver_that_is_away_is_tried_at_growing_pauses_and_for_a_day(
    receiver: Receiver, later: Later
) -> None:
    receiver.statuses = [500] * 1000
    tries = []
    for _ in range(5 * 60):
        later.ahead_us += MINUTE_US
        later.seconds += 60
        before = len(receiver.paths)
        later.webhook.look()
        if len(receiver.paths) > before:
            tries.append(later.seconds)
    pauses = [after - before for before, after in itertools.pairwise(tries)]
    assert pauses == sorted(pauses)
    assert max(pauses) == 3600
    assert len(tries) < 15
    receiver.statuses = []
    later.ahead_us += GIVEN_UP_US
    later.look()
    assert receiver.messages == []


def test_a_restart_goes_on_where_the_last_process_was(
    people: Service, receiver: Receiver, later: Later, tmp_path: Path
) -> None:
    receiver.statuses = [500]
    later.look()
    later.webhook.close()
    for _ in range(2):
        again = Later(people, receiver, tmp_path / "cursor")
        again.look()
        again.webhook.close()
        assert [one["type"] for one in receiver.events()] == ["version_ready"]
    # A power failure may leave an empty cursor file. Then notices of less than a day ago are sent
    # again.
    (tmp_path / "cursor").write_text("")
    again = Later(people, receiver, tmp_path / "cursor")
    again.look()
    again.webhook.close()
    assert [one["type"] for one in receiver.events()] == 2 * ["version_ready"]


def test_of_two_processes_on_one_folder_the_second_waits_for_the_end_of_the_first(
    people: Service, receiver: Receiver, later: Later, tmp_path: Path
) -> None:
    second = Later(people, receiver, tmp_path / "cursor")
    second.look()
    assert receiver.messages == []
    later.webhook.close()
    second.look()
    assert [one["type"] for one in receiver.events()] == ["version_ready"]
    second.webhook.close()
    assert {file.name for file in tmp_path.glob("*cursor*")} == {"cursor"}


def test_a_stop_ends_a_look_after_its_current_message(
    people: Service, receiver: Receiver, later: Later
) -> None:
    people.dataset("olga", name="square")
    deliver = later.webhook._deliver

    def stopping(*sent: Any) -> bool:
        later.webhook.stop()
        return deliver(*sent)

    later.webhook._deliver = stopping  # type: ignore[method-assign]
    later.look()
    assert len(receiver.messages) == 1


def test_a_receiver_that_is_not_there_is_logged_without_its_address(
    later: Later,
) -> None:
    target = replace(later.webhook._target, address="http://127.0.0.1:1/?token=hidden")
    later.webhook._target = target
    with capture_logs() as logs:
        later.look()
    (line,) = logs
    assert line == {
        "event": "the webhook was not reached",
        "error": "ConnectError",
        "log_level": "error",
    }


def test_a_receiver_that_never_ends_its_headers_is_given_up(
    later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 204 No Content\r\n")
                for _ in range(40):
                    connection.sendall(b"X-More: 1\r\n")
                    time.sleep(0.05)
                connection.sendall(b"\r\n")

        dripping = threading.Thread(target=drip)
        dripping.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        later.webhook._target = replace(later.webhook._target, address=address)
        with capture_logs() as logs:
            later.look()
        dripping.join()
    assert [line.get("error") for line in logs] == ["TimeoutError"]


def test_signatures_are_those_of_standard_webhooks() -> None:
    """The example of the specification's reference libraries."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signed_headers(
        key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("http://elsewhere.example/hook", SECRET),
        ("ftp://127.0.0.1/hook", SECRET),
        ("https://user:password@chat.example/hook", SECRET),
        ("https:///hook", SECRET),
        ("https://chat.example/hook", "whsec_c2hvcnQ="),
        ("https://chat.example/hook", SECRET.removeprefix("whsec_")),
        ("https://chat.example/hook", SECRET + "!"),
        ("https://chat.example/hook", None),
        (None, SECRET),
    ],
)
def test_an_unsafe_address_or_secret_is_refused(url: str | None, secret: str | None) -> None:
    with pytest.raises(ValidationError):
        Settings(webhook_url=url, webhook_secret=secret)  # type: ignore[arg-type]


def test_a_service_starts_its_webhook_and_stops_with_it(receiver: Receiver, tmp_path: Path) -> None:
    named = {"webhook_url": receiver.address, "webhook_secret": SECRET}
    settings = Settings(data=tmp_path / "data", release_interval=0, **named)  # type: ignore[arg-type]
    assert SECRET not in repr(settings)
    assert receiver.address not in repr(settings)
    with TestClient(create_app(settings)):
        assert "webhook" in {thread.name for thread in threading.enumerate()}
        assert (tmp_path / "data/webhook.cursor").is_file()
    assert "webhook" not in {thread.name for thread in threading.enumerate()}
