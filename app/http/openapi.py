"""The OpenAPI document: FastAPI derives most of it, and this file adds the rest.

It adds the schema of problems, and for every protected route the key that it needs and the roles
that it admits.
"""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts

from app.http.access import ROLES
from app.http.route import Route

PROBLEM_SCHEMA: dict[str, Any] = {
    "title": "Problem",
    "description": "RFC 9457. `type` is a path of this service that explains the problem.",
    "type": "object",
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "loc": {"type": "array", "items": {"type": ["string", "integer"]}},
                    "type": {"type": "string"},
                    "msg": {"type": "string"},
                },
                "required": ["loc", "type", "msg"],
            },
        },
    },
    "required": ["type", "title", "status"],
    "additionalProperties": True,
}


def document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of ``app``, which is generated at the first call."""
    if app.openapi_schema is None:
        app.openapi_schema = _generated(app)
    return app.openapi_schema


def routes_of(app: FastAPI) -> list[Route]:
    """Every route of ``app`` that is a ``Route`` of this project."""
    originals = (context.original_route for context in iter_route_contexts(app.routes))
    return [route for route in originals if isinstance(route, Route)]


def route_of(app: FastAPI, method: str, path: str) -> Route:
    """The route of ``app`` for this method and path."""
    (route,) = (r for r in routes_of(app) if r.path == path and method in (r.methods or ()))
    return route


def _generated(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        summary=app.summary,
        routes=app.routes,
    )
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    components["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key, `pp_<id>_<secret>`, shown once when it was issued; or an access "
            "token of the OpenID provider, where one is configured.",
        }
    }
    for route in routes_of(app):
        if not route.include_in_schema:
            continue
        for method in route.methods or ():
            _describe_access(document["paths"][route.path_format][method.lower()], route)
    return document


def _describe_access(operation: dict[str, Any], route: Route) -> None:
    assert isinstance(route, APIRoute)
    if route.access.public:
        return
    operation["security"] = [{"key": []}]
    operation["x-roles"] = sorted(route.access.roles)
    who = "any key" if route.access.roles == ROLES else ", ".join(sorted(route.access.roles))
    text = operation.get("description", "")
    operation["description"] = f"{text}\n\nWho: {who}.".strip()
