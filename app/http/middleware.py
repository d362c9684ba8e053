"""Gives every request an id, every reply its fixed headers, and writes one log line and one count.

Danger: a traceback quotes values, and values may be records. This layer is therefore the outermost
one, and no exception passes it. An unexpected failure gets one fixed reply, and the log gets only
the class of the exception.
"""

import time
from collections.abc import Mapping
from secrets import token_hex

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.contract.problems import BUSY, INTERNAL, response
from app.telemetry import logs
from app.telemetry.metrics import Metrics

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
#: Headers that replace or extend ``HEADERS`` in replies that a browser may show as a page.
OF_PAGES = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def _encoded(headers: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.lower().encode(): value.encode() for name, value in headers.items()}


#: The headers of replies with JSON and of all other replies, encoded for ASGI.
FIXED, FIXED_OF_PAGES = _encoded(HEADERS), _encoded(HEADERS | OF_PAGES)
JSON = {(b"content-type", b"application/json"), (b"content-type", b"application/problem+json")}
#: Pages may replace the fixed header ``Referrer-Policy: no-referrer`` by this one, and no other.
#: Under the fixed one, browsers would send forms with the origin "null", which is refused.
ADMITTED = (b"referrer-policy", b"same-origin")


#: Probes of the operator, which answer even when there is no room for another connection.
PROBES = ("/healthz", "/readyz")
#: The protocol sets this key of ``scope["state"]`` for connections that may reach the probes alone.
PROBES_ONLY = "probes_only"
RETRY = {"Retry-After": "1"}


class Observed:
    """ASGI middleware that gives requests ids, replies fixed headers, and counts and logs both."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"]
        if method == "HEAD":
            # A HEAD request is handled as a GET and gets the same headers. The server drops the
            # content (RFC 9110, 9.3.2).
            scope = {**scope, "method": "GET"}
        request_id = token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        started = time.perf_counter()
        status: int | None = None

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = guarded(message["headers"], request_id)
            await send(message)

        try:
            if PROBES_ONLY in scope["state"] and scope["path"] not in PROBES:
                full = response(BUSY, request_id, headers=RETRY)
                await full(scope, receive, send_with_headers)
            else:
                await self._app(scope, receive, send_with_headers)
        except ClientDisconnect:
            pass  # The client is gone, so there is nobody to answer.
        except Exception as error:
            logs.ready.error("failed", request_id=request_id, error=type(error).__qualname__)
            if status is None:
                await response(INTERNAL, request_id)(scope, receive, send_with_headers)
        finally:
            # Logs and metrics get the template of the path, because the path itself contains names
            # of users and datasets.
            template = scope.get("route")
            route = getattr(template, "path", "(none)")
            # Danger: the time to read and prepare records depends on them, so the metrics must not
            # contain the durations of uploads.
            is_timed = not getattr(template, "takes_records", False)
            seconds = time.perf_counter() - started if is_timed else None
            self._metrics.observe(method, route, status, seconds)
            logs.note_request(request_id, method, route, status)


def guarded(own: list[tuple[bytes, bytes]], request_id: str) -> list[tuple[bytes, bytes]]:
    """The headers of a reply: its own and the fixed ones, which replace those of equal name."""
    fixed = FIXED_OF_PAGES if JSON.isdisjoint(own) else FIXED
    if ADMITTED in own:
        fixed = fixed | dict([ADMITTED])
    headers = [pair for pair in own if pair[0] not in fixed]
    if all(name != b"cache-control" for name, _ in headers):
        headers.append((b"cache-control", b"no-store"))
    return [*headers, *fixed.items(), (b"x-request-id", request_id.encode())]
