"""The client and a service that is killed in the middle of a query: one answer, one charge."""

from __future__ import annotations

import io
import re
import sys
import threading
import time

import pytest

from privypurse import PrivyPurse, TopK
from tests.process import test_crash_in_a_query as crash
from tests.process.session import Session

pytestmark = crash.pytestmark
# A service with a graph that takes seconds to draw from.
session = crash.session


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_killed_service_gives_one_answer_for_one_charge(session: Session) -> None:
    service = session.service
    answers: list[TopK | Exception] = []

    def asking() -> None:
        try:
            with PrivyPurse(service.url, session.analyst) as purse:
                answers.append(
                    purse.top_k(
                        "wide", 300, "degree", epsilon="0.5", sensitivity="global", draws="peeled"
                    )
                )
        except Exception as error:
            answers.append(error)

    caller = threading.Thread(target=asking)
    caller.start()
    deadline = time.monotonic() + 60
    while not crash.charges(session):
        assert caller.is_alive(), f"answered before it was seen running: {answers}"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    service.kill()
    assert caller.is_alive()
    service.start().wait_ready()
    caller.join(120)

    [answer] = answers
    assert isinstance(answer, TopK), answer
    assert len(set(answer.selected)) == 300
    [charge] = crash.charges(session)
    assert (charge["epsilon"], crash.spent(session)) == ("0.5", "0.5")
    [query] = session.ok("GET", "/v1/queries?dataset=wide", session.analyst)["items"]
    assert (query["id"], query["status"]) == (answer.id, "answered")
    # The client returned the answer that the service has stored.
    assert session.ok("GET", f"/v1/queries/{answer.id}", session.analyst) == answer.reply


def test_waiting_shows_elapsed_against_expected_on_a_terminal(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with PrivyPurse(session.service.url, session.analyst) as purse:
        # The query takes some seconds on any machine; the progress line appears after two.
        purse.top_k("wide", 900, "degree", epsilon="0.5", sensitivity="global", draws="peeled")
    lines = terminal.getvalue().split("\r")
    assert re.search(r"^top_k on wide  \[#+\.*\]  \d+\.\d of \d+\.\d s *$", lines[1]), lines
    assert lines[-2].isspace()
    assert lines[-1] == ""
