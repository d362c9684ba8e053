"""Queries as the history lists them, and quotes."""

from datetime import datetime
from typing import Any

from app.contract.models import Reply


class QueryOut(Reply):
    """One query of the history; times are the reservation and the release instant."""

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
    """What the query would be charged, step by step, and what may be expected of its answer."""

    charge: ChargeOut
    steps: list[dict[str, Any]]
    accuracy: dict[str, Any]
    affordable: bool
