"""The public catalogue of queries and limits, as clients see it."""

from typing import Any

from app.contract.models import Reply


class Catalogue(Reply):
    """The query kinds with parameters and parts, such as utilities, and the service's limits.

    ``automatic`` is the choice of ``auto``, and ``stages`` is what the option of this name takes by
    default. What is ``advanced`` serves comparisons, or has a default that most users keep.
    """

    queries: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    utilities: list[dict[str, Any]]
    objectives: list[dict[str, Any]]
    automatic: list[dict[str, str]]
    stages: list[dict[str, str | None]]
    sensitivities: list[dict[str, str | bool]]
    selectors: list[dict[str, str | bool]]
    statistics: list[dict[str, Any]]
    amounts: dict[str, Any]
    limits: dict[str, Any]
