"""Requests as a reader could send them: each is shown as a curl line, then sent, then answered."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

#: Longer bodies are shown in part, though sent in full; longer replies are shown in part too.
SHOWN_OF_BODY = 400
SHOWN_OF_REPLY = 2000


class Unexpected(Exception):
    """The service answered otherwise than the demonstration expects."""


class Transcript:
    """One printed conversation with the service at ``url``; keys are shown by name only."""

    def __init__(self, url: str, folder: Path) -> None:
        self._client = httpx.Client(base_url=url, timeout=120)
        self._url, self._folder = url, folder
        self._keys: dict[str, str] = {}

    def close(self) -> None:
        self._client.close()

    def say(self, text: str) -> None:
        """A line for the reader."""
        print(f"\n## {text}", flush=True)

    def know(self, who: str, key: str) -> None:
        """Let ``who`` stand for ``key`` in the curl lines: ``$ADMIN``."""
        self._keys[who] = key

    def key(self, who: str) -> str:
        """What ``who`` stands for."""
        return self._keys[who]

    def send(
        self,
        who: str,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        expect: int | tuple[int, ...],
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a JSON request as ``who``; the JSON of the reply."""
        content = None if body is None else json.dumps(body, ensure_ascii=False).encode()
        sent = {"Content-Type": "application/json"} if content else {}
        arguments = [] if content is None else ["-d", self._as_argument(content)]
        return self._exchange(
            who, method, path, content, sent | dict(headers or {}), arguments, expect
        )

    def upload(
        self,
        who: str,
        path: str,
        file: Path,
        headers: Mapping[str, str],
        *,
        expect: tuple[int, ...],
    ) -> Any:
        """PUT a file as ``who``, from disk; the JSON of the reply."""
        content = file.read_bytes()
        arguments = ["--data-binary", f"@{file.name}"]
        return self._exchange(who, "PUT", path, content, dict(headers), arguments, expect)

    def _exchange(
        self,
        who: str,
        method: str,
        path: str,
        content: bytes | None,
        headers: dict[str, str],
        arguments: list[str],
        expect: int | tuple[int, ...],
    ) -> Any:
        curl = ["curl", "-sS"] + (["-X", method] if method != "GET" else [])
        words = [*curl, self._url + path]
        for name, value in headers.items():
            words += ["-H", f"{name}: {value}"]
        line = shlex.join([*words, *arguments])
        print(f'\n$ {line} -H "Authorization: Bearer ${who}"', flush=True)
        authorization = {"Authorization": f"Bearer {self._keys[who]}"}
        reply = self._client.request(method, path, content=content, headers=headers | authorization)
        print(f"{reply.status_code} {self._masked(reply)}", flush=True)
        expected = (expect,) if isinstance(expect, int) else expect
        if reply.status_code not in expected:
            raise Unexpected(f"{method} {path}: {reply.status_code}, expected {expect}")
        return reply.json()

    def _as_argument(self, content: bytes) -> str:
        """The body itself, or the name of a file that holds it when it is long."""
        text = content.decode()
        if len(text) <= SHOWN_OF_BODY:
            return text
        name = f"{json.loads(text)['name']}.json"
        (self._folder / name).write_bytes(content)
        print(f"\n{name}: {text[:SHOWN_OF_BODY]} …")
        return f"@{name}"

    def _masked(self, reply: httpx.Response) -> str:
        text = reply.text
        for who, key in self._keys.items():
            text = text.replace(key, f"${who}")
        if "json" in reply.headers.get("Content-Type", ""):
            parsed = json.loads(text)
            if isinstance(parsed, dict) and "key" in parsed:
                parsed["key"] = "pp_…"  # Shown once, to its user; a transcript is no place for it.
            text = json.dumps(parsed, ensure_ascii=False)
        return text if len(text) <= SHOWN_OF_REPLY else f"{text[:SHOWN_OF_REPLY]} …"
