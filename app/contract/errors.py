"""What the HTTP layer itself refuses; the status of each stands in ``app.contract.problems``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mechanisms.model.errors import UnsupportedQuery as UnsupportedQuery


class HttpRefusal(Exception):
    """The base of every refusal that has nothing to do with datasets or budgets."""


class Unauthenticated(HttpRefusal):
    """No valid key came with the request."""


class Forbidden(HttpRefusal):
    """No role of the caller may ever use this route."""


class CrossSite(HttpRefusal):
    """A form was sent from elsewhere than a page of this service and of the session it names."""


class NotAcceptable(HttpRefusal):
    """The ``Accept`` header admits nothing that this route can send."""


class BodyTooLarge(HttpRefusal):
    """The body is longer than this route reads."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"a body of at most {limit} bytes is read here")


class BodyTooSlow(HttpRefusal):
    """The body did not arrive in time."""


class UnsupportedMediaType(HttpRefusal):
    """The body is of a type or an encoding that this route does not read."""

    def __init__(self, *supported: str) -> None:
        super().__init__(f"this route reads {', '.join(supported)}")


class NodesMissing(HttpRefusal):
    """A graph that was registered without nodes has no node list yet."""


class RateLimited(HttpRefusal):
    """Too many requests, or too many queries at once, from one analyst."""

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("you have sent too many requests or have too many queries in flight")
        self.retry_after = retry_after


class Busy(HttpRefusal):
    """The whole service has as much in hand as it can hold."""

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("the service has as many queries in flight as it holds")
        self.retry_after = retry_after


class FieldError(NamedTuple):
    """Where a body or parameter is wrong and why; the text never repeats what was sent."""

    loc: tuple[str | int, ...]
    type: str
    msg: str


class InvalidRequest(HttpRefusal):
    """The request does not have the form that the contract gives it."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("the request does not have the form described in the documentation")
        self.errors = tuple(errors)

    @classmethod
    def at(cls, *loc: str | int, type: str, msg: str) -> InvalidRequest:
        return cls([FieldError(loc, type, msg)])


#: How many field errors one reply lists.
MAX_ERRORS = 20


def field_errors(errors: Sequence[Mapping[str, object]]) -> list[FieldError]:
    """Pydantic's errors without input: its ``input``, ``ctx`` and ``url`` never leave.

    Two of its texts do carry input: the name of an unknown field (in ``loc``), which is cut and
    escaped, and the message of an unknown union tag, which is replaced.
    """
    safe = []
    for error in errors[:MAX_ERRORS]:
        loc = error["loc"]
        assert isinstance(loc, tuple)
        kind, msg = str(error["type"]), str(error["msg"])
        if kind == "union_tag_invalid":
            context = error.get("ctx")
            assert isinstance(context, dict)
            msg = f"Expected one of the tags {context['expected_tags']}"
        # Written by this project's validators; the library's prefix tells a reader nothing.
        msg = msg.removeprefix("Value error, ")
        # JSON has lists; that they are tuples here is nobody's business.
        if kind in ("too_short", "too_long"):
            msg = msg.replace("Tuple should", "List should")
        safe.append(FieldError(tuple(_safe(part) for part in loc), kind, msg))
    return safe


def _safe(part: object) -> str | int:
    if isinstance(part, int):
        return part
    text = str(part)
    escaped = "".join(c if c.isascii() and (c.isalnum() or c in "_-.") else "?" for c in text[:40])
    return escaped if len(text) <= 40 else escaped + "..."
