"""Browsers of several users: each has its own cookies and submits forms with the page's token."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from tests.support.service import Service

HOME = "https://purse.example"


class Browser:
    """One signed-in browser; ``post`` sends the CSRF token of the page that it read last."""

    def __init__(self, service: Service, key: str | None) -> None:
        # The test client is not entered as a context, because the service fixture starts and stops
        # the application. It shares the event loop of the fixture: closing a loop of its own would
        # cancel running queries.
        self.client = TestClient(
            service.client.app,
            base_url=HOME,
            raise_server_exceptions=False,
            follow_redirects=False,
            headers={"Accept": "text/html"},
        )
        self.client.portal = service.client.portal
        self.csrf = ""
        if key is not None:
            reply = self.post("/ui/sign-in", key=key)
            assert reply.status_code == 303, reply.text
            self.get(reply.headers["location"])

    def get(self, path: str, **params: Any) -> httpx.Response:
        """Returns the page after all redirections, as a browser does."""
        reply = self.client.get(path, params=params or None, follow_redirects=True)
        match = re.search(r'name="csrf" value="(\w*)"', reply.text)
        self.csrf = match[1] if match else self.csrf
        return reply

    def post(
        self, path: str, headers: dict[str, str] | None = None, files: Any = None, **fields: Any
    ) -> Any:
        """Send a form from a page of this site; fields may be lists."""
        data = {"csrf": self.csrf, **fields}
        sent = {"Origin": HOME, **(headers or {})}
        return self.client.post(path, data=data, headers=sent, files=files)

    def text(self, path: str, **params: Any) -> str:
        """Returns the text of a page without its tags."""
        reply = self.get(path, **params)
        assert reply.status_code == 200, (path, reply.status_code, reply.text)
        return words(reply.text)


def words(page: str) -> str:
    """The text of a page, entities resolved and blanks made one."""
    visible = re.sub(r"<(script|style|head)\b.*?</\1>", " ", page, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", visible)).split())


def bars(page: str) -> list[str]:
    """What the bars of a page say of the measures of an account, in order."""
    return re.findall(r'aria-label="(\d+ percent of [ερ] is left)"', page)


SignIn = Callable[[str | None], Browser]


@pytest.fixture
def sign_in(people: Service) -> SignIn:
    """Opens a browser, signed in as one of the users or as nobody."""
    return lambda who: Browser(people, None if who is None else people.keys[who])
