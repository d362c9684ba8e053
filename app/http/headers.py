"""The headers of a request, in a table: the framework searches the list for every look-up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope


class HeaderTable(Headers):
    """What ``Headers`` gives; of a name that was sent more than once that is the first."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        self._first = dict(reversed(self.raw))

    def get(self, key: str, default: Any = None) -> Any:
        found = self._first.get(key.lower().encode("latin-1"))
        return default if found is None else found.decode("latin-1")


class QuickRequest(Request):
    """A request that is asked for many of its headers, and often for what was noted with it."""

    def __init__(self, scope: Scope, *channels: Any) -> None:
        super().__init__(scope, *channels)
        self._noted = SimpleNamespace(**scope.get("state", {}))

    @property
    def state(self) -> Any:
        return self._noted

    @property
    def headers(self) -> Headers:
        if not hasattr(self, "_headers"):
            self._headers: Headers = HeaderTable(self.scope)
        return self._headers
