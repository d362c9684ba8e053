"""The public catalogue of queries and limits, as clients see it."""

from typing import Any

from app.contract.models import Reply


class Catalogue(Reply):
    """The query kinds with parameters and parts, such as utilities, and the service's limits."""

    queries: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    utilities: list[dict[str, Any]]
    objectives: list[dict[str, Any]]
    sensitivities: list[dict[str, str]]
    selectors: list[dict[str, str]]
    automatic: list[dict[str, str]]
    statistics: list[dict[str, Any]]
    amounts: dict[str, Any]
    limits: dict[str, Any]
