"""Replies whose bytes never change while an application runs: they are written once."""

from collections.abc import Callable

from fastapi import Request
from starlette.responses import Response


def written_once(request: Request, name: str, write: Callable[[], bytes]) -> Response:
    """The JSON reply ``name`` of this application, which ``write`` makes at the first call.

    Danger: the reply must be the same for all callers, and hold public facts alone.
    """
    state = request.app.state
    if not hasattr(state, name):
        setattr(state, name, write())
    return Response(getattr(state, name), media_type="application/json")
