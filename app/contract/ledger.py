"""Entries of the ledger and its verification as clients see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from app.contract.models import Reply

EntryKind = Literal["genesis", "charge", "release", "limit_change", "freeze", "unfreeze"]


class EntryOut(Reply):
    """One change of one account; a charge and a granted limit are positive.

    ``account``: ``analyst`` (one analyst on one dataset), ``analyst_total`` or ``cap``.
    """

    account: str
    seq: int
    kind: str
    dataset: str | None
    analyst: str | None
    actor: str
    query: str | None
    epsilon: str
    delta: str
    at: datetime
    head: str


class BadRow(Reply):
    """A row that contradicts the rest of the ledger: its table, its key in words, and how."""

    table: str
    row: str
    reason: str


class VerificationOut(Reply):
    """``head`` stands for the heads of all accounts that were recomputed."""

    valid: bool
    accounts: int
    entries: int
    head: str
    first_bad: BadRow | None
