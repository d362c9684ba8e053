"""The refusals of the HTTP layer itself; ``app.contract.problems`` gives the status of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mechanisms.model.errors import UnsupportedQuery as UnsupportedQuery


class HttpRefusal(Exception):
    """The base of every refusal in this file."""


class Unauthenticated(HttpRefusal):
    """The request has no valid key or token."""


class Forbidden(HttpRefusal):
    """No role of the caller may ever use this route."""

    def __init__(self, text: str = "No role of the caller may ever use this route.") -> None:
        super().__init__(text)


class RestrictedKey(Forbidden):
    """The key may not do what its user may."""

    def __init__(self) -> None:
        super().__init__(
            "This key has restrictions and may not do this. Use a key of yours without them."
        )


class CrossSite(HttpRefusal):
    """A form that was not sent from a page of this service in the session that it names."""


class NotAcceptable(HttpRefusal):
    """The ``Accept`` header admits no media type that this route can send."""


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
        super().__init__("you have sent too many requests or have too many in flight")
        self.retry_after = retry_after


class TooCostly(HttpRefusal):
    """The public worst case of a query exceeds a limit of this service, so it never runs."""

    def __init__(self, cost: str, limit: str, lower: Sequence[str] = ()) -> None:
        super().__init__(f"the query may take {cost}, and the limit is {limit}")
        self.cost, self.limit, self.lower = cost, limit, list(lower)


class Busy(HttpRefusal):
    """The whole service has as much in flight as it can hold."""

    def __init__(self, retry_after: int = 1) -> None:
        super().__init__("the service has as much in flight as it holds")
        self.retry_after = retry_after


class WarmingUp(HttpRefusal):
    """A process that has just started loads its kernels, so a query would miss its deadline."""

    retry_after = 5

    def __init__(self) -> None:
        super().__init__("the service has just started and is warming up")


class FieldError(NamedTuple):
    """The place and the reason of an error in a body or parameter; it never repeats the input."""

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


#: The most field errors that one reply lists.
MAX_ERRORS = 20


def field_errors(errors: Sequence[Mapping[str, object]]) -> list[FieldError]:
    """The errors of Pydantic without the input: ``input``, ``ctx`` and ``url`` are dropped.

    Two other texts contain input. The name of an unknown field, in ``loc``, is cut and escaped. The
    message about an unknown union tag is replaced.
    """
    safe = []
    for error in errors[:MAX_ERRORS]:
        loc = error["loc"]
        assert isinstance(loc, tuple)
        # If items of a list are refused, Pydantic also reports the list as too short. That error
        # would mislead, so it is left out.
        if error["type"] == "too_short" and any(_is_within(other, loc) for other in errors):
            continue
        kind, msg = str(error["type"]), str(error["msg"])
        if kind in ("union_tag_invalid", "union_tag_not_found"):
            # The field that tells which form a body has, such as ``kind``, is unknown or missing.
            context = error.get("ctx")
            assert isinstance(context, dict)
            loc = (*loc, context["discriminator"].strip("'"))
            expected = context.get("expected_tags")
            msg = f"Expected one of {expected}" if expected else "Field required"
        # Clients need not see this prefix, which Pydantic puts before the messages of this
        # project's validators.
        msg = msg.removeprefix("Value error, ")
        # Models hold tuples, but JSON has lists, so the message for the client speaks of a list.
        if kind in ("too_short", "too_long"):
            msg = msg.replace("Tuple should", "List should")
        safe.append(FieldError(tuple(_safe(part) for part in loc), kind, msg))
    return safe


def _is_within(error: Mapping[str, object], loc: tuple[object, ...]) -> bool:
    """True if the error is about an item of the list at ``loc``."""
    inner = error["loc"]
    assert isinstance(inner, tuple)
    return len(inner) > len(loc) and inner[: len(loc)] == loc


def _safe(part: object) -> str | int:
    if isinstance(part, int):
        return part
    text = str(part)
    escaped = "".join(c if c.isascii() and (c.isalnum() or c in "_-.") else "?" for c in text[:40])
    return escaped if len(text) <= 40 else escaped + "..."
