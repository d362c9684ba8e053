"""Several processes behind one port, by ``serve --processes``: one service, one budget."""

from __future__ import annotations

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from app.demo.service import ServiceProcess
from tests.process.conftest import QUICK
from tests.process.session import CERTIFICATES, QUERY, Session
from tests.support.patience import PATIENCE, REPLY, WAIT, until
from tests.support.postgresql import new_database

PROCESSES, RACING, FIT = 2, 200, 10


def children(service: ServiceProcess) -> set[int]:
    """The processes that serve."""
    serving = set()
    for pid in Path(f"/proc/{service.pid}/task/{service.pid}/children").read_text().split():
        with suppress(FileNotFoundError):
            if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text():
                serving.add(int(pid))
    return serving


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgresql", marks=(pytest.mark.slow, pytest.mark.postgres))],
)
def session(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("processes")
    settings = QUICK | {
        "PURSE_PROCESSES": str(PROCESSES),
        "PURSE_METRICS_TOKEN": "t" * 20,
        "PURSE_LEASE": "2",
    }
    with ExitStack() as closing:
        if request.param == "postgresql":
            settings["PURSE_DATABASE_URL"] = closing.enter_context(new_database())
        service = closing.enter_context(ServiceProcess(folder / "data", **settings))
        yield Session.open(service)
        serving = children(service)
        assert len(serving) == PROCESSES
        assert service.stop(PATIENCE) == 0
        until(lambda: not any(map(runs, serving)))


def ask(session: Session, key: str, **changes: str) -> httpx.Response:
    """Ask as a client does: again with the same key while a process has not opened the records."""
    headers = WAIT | {"Authorization": f"Bearer {session.analyst}", "Idempotency-Key": key}
    deadline = time.monotonic() + PATIENCE
    url = session.service.url + "/v1/queries"
    while True:
        with suppress(httpx.TransportError):
            body = QUERY | changes
            reply = httpx.post(url, json=body, headers=headers, timeout=REPLY, verify=CERTIFICATES)
            if reply.status_code not in (409, 503):
                return reply
        assert time.monotonic() < deadline
        time.sleep(0.1)


def grant(session: Session, epsilon: str) -> None:
    """Grant the analyst so much more than is spent."""
    total = float(session.spent()) + float(epsilon)
    body = {"epsilon": f"{total:g}", "delta": "0"}
    session.ok("PUT", "/v1/datasets/star/budgets/ada", session.owner, json=body)


def test_racing_for_what_ten_fit_into_ten_are_answered(session: Session) -> None:
    grant(session, "1")
    spent = float(session.spent())

    def one(number: int) -> httpx.Response:
        return ask(session, f"race-{number}", epsilon="0.1")

    with ThreadPoolExecutor(max_workers=40) as racers:
        replies = list(racers.map(one, range(RACING)))
    assert Counter(reply.status_code for reply in replies) == {201: FIT, 403: RACING - FIT}
    assert float(session.spent()) == pytest.approx(spent + 1)
    chain = session.ok("GET", "/v1/ledger/verification", session.owner)
    assert chain["valid"]


def test_metrics_show_all_processes_together(session: Session) -> None:
    grant(session, "1")

    def scraped() -> float:
        url = session.service.url + "/metrics"
        headers = {"Authorization": "Bearer " + "t" * 20}
        text = httpx.get(url, headers=headers, timeout=REPLY, verify=CERTIFICATES).text
        [total] = re.findall(
            r'^privypurse_requests_total\{.*"/v1/queries".*"201".*\} (\S+)$', text, re.M
        )
        assert "pid=" not in text
        return float(total)

    def all_scraped() -> set[float]:
        return {scraped() for _ in range(8)}

    ask(session, "before")
    # A process counts a request only when its reply has left, which may be late on a busy machine.
    time.sleep(1)
    (before,) = all_scraped()
    for number in range(8):
        assert ask(session, f"counted-{number}", epsilon="0.01").status_code == 201
    until(lambda: all_scraped() == {before + 8})


def test_a_process_that_is_killed_costs_nobody_an_answer_or_a_charge(session: Session) -> None:
    grant(session, "1")
    spent = float(session.spent())
    killed = children(session.service)
    assert len(killed) == PROCESSES

    def one(number: int) -> httpx.Response:
        if number == 5:
            os.kill(min(killed), signal.SIGKILL)
        return ask(session, f"killed-{number}", epsilon="0.05")

    with ThreadPoolExecutor(max_workers=4) as asking:
        replies = list(asking.map(one, range(20)))
    assert [reply.status_code for reply in replies] == [201] * 20
    assert len({reply.json()["id"] for reply in replies}) == 20
    assert float(session.spent()) == pytest.approx(spent + 1)
    until(lambda: len(children(session.service) - {min(killed)}) == PROCESSES)


def test_all_of_them_end_with_the_one_that_watches_them(tmp_path: Path) -> None:
    """Here it is killed; the fixture ``session`` stops it."""
    settings = QUICK | {"PURSE_PROCESSES": str(PROCESSES)}
    service = ServiceProcess(tmp_path / "data", **settings).start().wait_ready(PATIENCE)
    serving = children(service)
    assert len(serving) == PROCESSES
    service.kill()
    until(lambda: not any(map(runs, serving)))


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()
