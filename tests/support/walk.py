"""Every reply to a GET request, of every route, page and role."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI

from app.dashboard.pages import Page
from app.http.openapi import routes_of
from tests.support.browser import Browser
from tests.support.service import Service


def every_get(
    people: Service,
    application: FastAPI,
    users: Collection[str],
    values: Mapping[str, Sequence[str]],
) -> Iterator[tuple[str, Any]]:
    """Request and reply of all GET routes but the metrics, as each of the users.

    ``values`` are those of every parameter in a path.
    """
    browsers = {who: Browser(people, people.keys[who]) for who in users}
    for route in routes_of(application):
        if "GET" not in (route.methods or ()) or route.path == "/metrics":
            continue
        names = [*route.param_convertors]
        for chosen in itertools.product(*(values[name] for name in names)):
            path = route.path.replace("{path:path}", "{path}").format(
                **dict(zip(names, chosen, strict=True))
            )
            for who in users:
                for query in ("", *variants(route)):
                    where = f"GET {path}{query} {who}"
                    if isinstance(route, Page):
                        yield where, browsers[who].client.get(path + query)
                    else:
                        yield where, people(who, "GET", path + query)


def variants(route: Any) -> list[str]:
    """The queries with which a route answers in other forms."""
    formats = [f"?format={name}" for name, _ in getattr(route.formats, "media_types", ())]
    by = ["?by=day", "?by=kind", "?by=mechanism"] if route.path.endswith("/history") else []
    return formats + by
