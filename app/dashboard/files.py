"""Reads a file in a multipart form as a stream, so no private record is stored in temporary files.

Browsers send the fields of a form in page order. The CSRF token therefore precedes the file, and
it is checked before any byte of the file is stored.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from app.contract.errors import BodyTooSlow, InvalidRequest, UnsupportedMediaType
from app.dashboard.sessions import check_csrf
from app.http.dependencies import services_of
from app.usecases.records import Delivery

#: The events of the multipart parser, in the order in which it reports one part of a form.
EVENTS = (
    "part_begin",
    "header_field",
    "header_value",
    "header_end",
    "headers_finished",
    "part_data",
    "part_end",
)
#: The most bytes of a form field that is not a file.
MOST_FIELD = 10_000
#: The media type of a file, by the suffix of its name.
MEDIA_TYPES = {
    ".csv": "text/csv",
    ".txt": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".graphml": "application/graphml+xml",
    ".json": "application/json",
}


class SentFile:
    """The file in a form; its media type follows from its name, and it can be read only once."""

    def __init__(self, request: Request) -> None:
        kind, options = parse_options_header(request.headers.get("content-type", ""))
        if kind != b"multipart/form-data":
            raise UnsupportedMediaType("multipart/form-data")
        self._request, self._stream = request, request.stream()
        self._events: deque[tuple[str, bytes]] = deque()
        callbacks: Any = {f"on_{event}": self._adder(event) for event in EVENTS}
        boundary = options.get(b"boundary")
        if not boundary:
            raise _malformed()
        try:
            self._parser = MultipartParser(boundary, callbacks)
        except FormParserError:
            raise _malformed() from None
        self.media_type, self.gzipped = "", False

    def _adder(self, event: str) -> Callable[..., None]:
        """A callback for the parser that queues the event with its bytes, if it has any."""

        def add(data: bytes = b"", start: int = 0, end: int = 0) -> None:
            self._events.append((event, data[start:end]))

        return add

    async def open(self) -> SentFile:
        """Read the form up to the start of the file.

        Raises: CrossSite if the token is wrong; InvalidRequest if no file comes; BodyTooSlow.
        """
        try:
            async with asyncio.timeout(services_of(self._request).settings.body_timeout):
                return await self._open()
        except TimeoutError:
            raise BodyTooSlow from None

    async def _open(self) -> SentFile:
        options: Mapping[bytes, bytes] = {}
        header, value, text, csrf = b"", b"", b"", ""
        async for event, data in self._all():
            match event:
                case "part_begin":
                    options, text = {}, b""
                case "header_field":
                    header += data
                case "header_value":
                    value += data
                case "header_end":
                    if header.lower() == b"content-disposition":
                        _, options = parse_options_header(value)
                    header, value = b"", b""
                case "headers_finished" if b"filename" in options:
                    check_csrf(self._request, csrf)
                    self._named(options[b"filename"].decode("utf-8", "replace"))
                    return self
                case "part_data":
                    text += data
                    if len(text) > MOST_FIELD:
                        raise InvalidRequest.at("body", type="form", msg="a field is too long")
                case "part_end" if options.get(b"name") == b"csrf":
                    csrf = text.decode("utf-8", "replace")
        check_csrf(self._request, csrf)
        raise InvalidRequest.at("body", "file", type="missing", msg="choose a file")

    def delivery(self) -> Delivery:
        """The file as an upload for the use cases of records."""
        return Delivery(self._content(), self.media_type, self.gzipped)

    async def _content(self) -> AsyncIterator[bytes]:
        """The bytes of the file in pieces; the fields after it are read and ignored."""
        inside = True
        async for event, data in self._all():
            if event == "part_data" and inside:
                yield data
            elif event == "part_end":
                inside = False
        if inside:
            raise InvalidRequest.at("body", "file", type="form", msg="the file ends too early")

    def _named(self, filename: str) -> None:
        if not filename:
            raise InvalidRequest.at("body", "file", type="missing", msg="choose a file")
        path = PurePosixPath(filename.lower())
        self.gzipped = path.suffix == ".gz"
        if self.gzipped:
            path = path.with_suffix("")
        media_type = MEDIA_TYPES.get(path.suffix)
        if media_type is None:
            raise UnsupportedMediaType("files that end in", *MEDIA_TYPES, ".csv.gz")
        self.media_type = media_type

    async def _all(self) -> AsyncIterator[tuple[str, bytes]]:
        while True:
            while self._events:
                yield self._events.popleft()
            chunk = await anext(self._stream, None)
            if chunk is None:
                return
            try:
                self._parser.write(chunk)
            except FormParserError:
                raise _malformed() from None


def _malformed() -> InvalidRequest:
    return InvalidRequest.at("body", type="form", msg="not a form")
