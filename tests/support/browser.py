"""People with a browser: each has a cookie jar of their own and sends forms as pages hold them."""

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
    """One signed-in browser; ``post`` takes the token out of the page that it was shown last."""

    def __init__(self, service: Service, key: str | None) -> None:
        # Not entered: the application's one start and stop belong to the service fixture. So does
        # its loop: one of its own would take each query along that outlives the page.
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
        """The page behind every redirection, like a browser."""
        reply = self.client.get(path, params=params or None, follow_redirects=True)
        found = re.search(r'name="csrf" value="(\w*)"', reply.text)
        self.csrf = found[1] if found else self.csrf
        return reply

    def post(
        self, path: str, headers: dict[str, str] | None = None, files: Any = None, **fields: Any
    ) -> Any:
        """Send a form from a page of this site; fields may be lists."""
        data = {"csrf": self.csrf, **fields}
        sent = {"Origin": HOME, **(headers or {})}
        return self.client.post(path, data=data, headers=sent, files=files)

    def text(self, path: str, **params: Any) -> str:
        """What a page says, without its tags."""
        reply = self.get(path, **params)
        assert reply.status_code == 200, (path, reply.status_code, reply.text)
        return words(reply.text)


def words(page: str) -> str:
    """The text of a page, entities resolved and blanks made one."""
    shown = re.sub(r"<(script|style|head)\b.*?</\1>", " ", page, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", shown)).split())


SignIn = Callable[[str | None], Browser]


@pytest.fixture
def sign_in(people: Service) -> SignIn:
    """A new browser of one of the people, or of nobody."""
    return lambda who: Browser(people, None if who is None else people.keys[who])
