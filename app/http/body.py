"""Request bodies: read within a limit of size and time, then passed on with their model."""

import asyncio
from contextlib import nullcontext
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from app.contract.errors import BodyTooLarge, BodyTooSlow, UnsupportedMediaType
from app.http.headers import header

#: ``app.http.protocol`` sets this flag in ``scope["state"]`` once the whole body has arrived. Such
#: a body is read without a timer, because it can no longer be slow.
ARRIVED = "arrived"


class ReadRequest(Request):
    """A request whose body was read: ``json()`` returns the validated model, not plain values.

    FastAPI validates the result of ``json()``, and leaves an instance of the model unchanged.
    """

    def __init__(self, request: Request, content: bytes, model: Any) -> None:
        super().__init__(request.scope, request.receive)
        self.content, self.model = content, model

    async def body(self) -> bytes:
        return self.content

    async def json(self) -> Any:
        return self.model


async def read(request: Request, media_type: str, limit: int, seconds: float) -> bytes:
    """The whole body, of at most ``limit`` bytes, if it arrives within ``seconds``.

    Raises: BodyTooLarge, BodyTooSlow; UnsupportedMediaType for a body of another media type.
    """
    length = header(request, b"content-length") or ""
    if length.isdecimal() and int(length[:20]) > limit:
        raise BodyTooLarge(limit)
    encoding = header(request, b"content-encoding")
    if encoding is not None and encoding.strip().lower() != "identity":
        raise UnsupportedMediaType("bodies without Content-Encoding")
    chunks, size, more = [], 0, True
    try:
        # Most bodies arrive together with their headers. To read such a body takes less time than
        # to set a timer, so it is read without one.
        has_arrived = request.scope.get("state", {}).get(ARRIVED, False)
        async with nullcontext() if has_arrived else asyncio.timeout(seconds):
            while more:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                chunks.append(message.get("body", b""))
                more = message.get("more_body", False)
                # A chunked body declares no length, so the bytes are counted as they arrive.
                size += len(chunks[-1])
                if size > limit:
                    raise BodyTooLarge(limit)
    except TimeoutError:
        raise BodyTooSlow from None
    sent = (header(request, b"content-type") or "").partition(";")[0].strip().lower()
    if size and sent != media_type:
        raise UnsupportedMediaType(media_type)
    return b"".join(chunks)
