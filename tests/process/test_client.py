"""The client and a service that is killed in the middle of a query: one answer, one charge."""

from __future__ import annotations

import io
import re
import sys
import threading
from collections.abc import Callable

import pytest

from privypurse import PrivyPurse, TopK
from tests.process import test_crash_in_a_query as crash
from tests.process.session import Session
from tests.support.blocked_service import BlockedService
from tests.support.patience import PATIENCE

# Fixtures: a service whose queries the test can block, and a session on it.
service = crash.service
session = crash.session


class Terminal(io.StringIO):
    """A terminal that calls ``at_first`` with its first line."""

    def __init__(self, at_first: Callable[[], None]) -> None:
        super().__init__()
        self._at_first: Callable[[], None] | None = at_first

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self._at_first and "[" in text:
            self._at_first()
            self._at_first = None
        return super().write(text)


def test_a_killed_service_gives_one_answer_for_one_charge(
    session: Session, service: BlockedService
) -> None:
    answers: list[TopK | Exception] = []

    def asking() -> None:
        try:
            with PrivyPurse(service.url, session.analyst) as purse:
                answers.append(
                    purse.top_k("star", 2, "degree", epsilon="0.5", sensitivity="global")
                )
        except Exception as error:
            answers.append(error)

    service.block()
    caller = threading.Thread(target=asking)
    caller.start()
    crash.wait_for_the_charge(session, caller)
    service.kill()
    assert caller.is_alive()
    service.unblock()
    service.start().wait_ready()
    caller.join(PATIENCE)

    [answer] = answers
    assert isinstance(answer, TopK), answer
    assert len(set(answer.selected)) == 2
    [charge] = crash.charges(session)
    assert (charge["epsilon"], session.spent()) == ("0.5", "0.5")
    [query] = session.ok("GET", "/v1/queries?dataset=star", session.analyst)["items"]
    assert (query["id"], query["status"]) == (answer.id, "answered")
    # The client returned the answer that the service has stored.
    assert session.ok("GET", f"/v1/queries/{answer.id}", session.analyst) == answer.reply


def test_waiting_shows_elapsed_against_expected_on_a_terminal(
    session: Session, service: BlockedService, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The answer of the query comes only after the progress line, which appears after two seconds.
    terminal = Terminal(service.unblock)
    monkeypatch.setattr(sys, "stderr", terminal)
    service.block()
    with PrivyPurse(service.url, session.analyst) as purse:
        purse.top_k("star", 2, "degree", epsilon="0.5", sensitivity="global")
    lines = terminal.getvalue().split("\r")
    assert re.search(r"^top_k on star  \[#+\.*\]  \d+\.\d of \d+\.\d s *$", lines[1]), lines
    assert lines[-2].isspace()
    assert lines[-1] == ""
