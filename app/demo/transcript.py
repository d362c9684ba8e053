"""Sends requests and prints each as a curl command, followed by its reply."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

#: Longer request bodies and replies are cut to this many characters in print.
SHOWN_OF_BODY = 400
SHOWN_OF_REPLY = 2000


class Unexpected(Exception):
    """A reply of the service is not the one that the demonstration expects."""


class Transcript:
    """A printed dialogue with the service at ``url``; keys appear only as ``$ADMIN`` or alike."""

    def __init__(self, url: str, folder: Path, admin_key: str) -> None:
        self._url, self._folder = url, folder
        #: API keys by role. In print the name of the role replaces the key: the admin's key appears
        #: as ``$ADMIN``.
        self.keys = {"ADMIN": admin_key}

    def say(self, text: str) -> None:
        """Print a heading for the next steps."""
        print(f"\n## {text}", flush=True)

    def send(
        self,
        who: str,
        method: str,
        path: str,
        body: Mapping[str, Any] | Path | None = None,
        *,
        expect: tuple[int, ...],
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Send JSON or a file with the key of ``who``, and return the JSON of the reply."""
        sent, content, arguments = dict(headers or {}), None, []
        if isinstance(body, Path):
            content, arguments = body.read_bytes(), ["--data-binary", f"@{body.name}"]
        elif body is not None:
            sent = {"Content-Type": "application/json", **sent}
            content = json.dumps(body, ensure_ascii=False).encode()
            arguments = ["-d", self._as_argument(content)]
        words = ["curl", "-sS", *(["-X", method] if method != "GET" else []), self._url + path]
        for name, value in sent.items():
            words += ["-H", f"{name}: {value}"]
        line = shlex.join([*words, *arguments])
        print(f'\n$ {line} -H "Authorization: Bearer ${who}"', flush=True)
        sent["Authorization"] = f"Bearer {self.keys[who]}"
        url = self._url + path
        reply = httpx.request(method, url, content=content, headers=sent, timeout=120)
        print(f"{reply.status_code} {self._masked(reply)}", flush=True)
        if reply.status_code not in expect:
            raise Unexpected(f"{method} {path}: {reply.status_code}, expected {expect}")
        return reply.json()

    def _as_argument(self, content: bytes) -> str:
        """The body as a curl argument: its text, or ``@`` and a file's name if the text is long."""
        text = content.decode()
        if len(text) <= SHOWN_OF_BODY:
            return text
        name = f"{json.loads(text)['name']}.json"
        (self._folder / name).write_bytes(content)
        print(f"\n{name}: {text[:SHOWN_OF_BODY]} …")
        return f"@{name}"

    def _masked(self, reply: httpx.Response) -> str:
        text = reply.text
        for who, key in self.keys.items():
            text = text.replace(key, f"${who}")
        if "json" in reply.headers.get("Content-Type", ""):
            parsed = json.loads(text)
            if isinstance(parsed, dict) and "key" in parsed:
                parsed["key"] = "pp_…"  # A transcript must not show a new API key.
            text = json.dumps(parsed, ensure_ascii=False)
        return text if len(text) <= SHOWN_OF_REPLY else f"{text[:SHOWN_OF_REPLY]} …"
