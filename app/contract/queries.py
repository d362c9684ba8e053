"""Queries as the history lists them, and quotes."""

from datetime import datetime
from typing import Any

from app.contract.models import Reply


class QueryOut(Reply):
    """One query. ``created``: when it was charged. ``released``: when its answer left."""

    id: str
    status: str
    analyst: str
    dataset: str
    dataset_version: int
    query: dict[str, Any]
    charge: dict[str, str]
    created: datetime
    released: datetime | None


class ChargeOut(Reply):
    epsilon: str
    delta: str
    neighbouring: str


class QuoteOut(Reply):
    """The charge of a query, step by step, and the accuracy to expect of its answer.

    ``affordable``: True if the charge fits every account that the query would be charged to.
    """

    charge: ChargeOut
    steps: list[dict[str, Any]]
    accuracy: dict[str, Any]
    affordable: bool
