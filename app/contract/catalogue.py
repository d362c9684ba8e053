"""What may be asked of the service, as clients see it; all of it is public."""

from typing import Any

from app.contract.models import Reply


class Catalogue(Reply):
    """Query kinds with their parameters, what they are made of, and the service's limits."""

    queries: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    utilities: list[dict[str, Any]]
    objectives: list[dict[str, Any]]
    sensitivities: list[dict[str, str]]
    selectors: list[dict[str, str]]
    selectors_not_offered: list[dict[str, str]]
    statistics: list[dict[str, Any]]
    amounts: dict[str, Any]
    limits: dict[str, Any]
