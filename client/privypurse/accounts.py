"""What the service says about datasets, budgets and the ledger, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from privypurse.amounts import Amount
from privypurse.levels import Column, columns_of


@dataclass(frozen=True)
class Dataset:
    """The public description of a dataset; ``description`` is all that the service shows.

    An admin sees names only: the rest is empty then.
    """

    name: str
    kind: str
    neighbouring: str
    status: str
    version: int
    description: Mapping[str, Any]

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            body["name"],
            body.get("kind", ""),
            body.get("neighbouring", ""),
            body.get("status", ""),
            body.get("version", 0),
            body,
        )

    @property
    def columns(self) -> dict[str, Column]:
        """The attributes of a table by name."""
        return columns_of(self.description)


@dataclass(frozen=True)
class Standing:
    """A limit, and what is left of it; ``spent`` includes running queries."""

    allowance: Amount
    spent: Amount
    remaining: Amount

    @staticmethod
    def amounts(body: Mapping[str, Any]) -> dict[str, Any]:
        return {name: Amount.of(body[name]) for name in ("allowance", "spent", "remaining")}

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Standing:
        return Standing(**cls.amounts(body))


@dataclass(frozen=True)
class Account(Standing):
    """What one analyst may learn of one dataset. ``etag``, for owners, is for ``if_match``."""

    dataset: str
    analyst: str
    etag: str | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Account:
        return Account(
            **cls.amounts(body),
            dataset=str(body["dataset"]),
            analyst=str(body["analyst"]),
            etag=body.get("etag"),
        )


@dataclass(frozen=True)
class Budgets:
    """All accounts of a dataset, its cap, and the loss if all analysts pool their answers."""

    accounts: list[Account]
    cap: Standing
    exposure: Amount
    exposure_at_most: Amount

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            [Account.of(one) for one in body["items"]],
            Standing.of(body["cap"]),
            Amount.of(body["exposure"]["spent"]),
            Amount.of(body["exposure"]["at_most"]),
        )


@dataclass(frozen=True)
class Point:
    """What was charged on one day, for one kind of query, or by one mechanism."""

    label: str
    queries: int
    charged: Amount

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["label"], body["queries"], Amount.of(body["charged"]))


@dataclass(frozen=True)
class Entry:
    """One change of one account, as the ledger keeps it."""

    account: str
    seq: int
    kind: str
    dataset: str | None
    analyst: str | None
    actor: str
    query: str | None
    amount: Amount
    at: datetime
    head: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        plain = ("account", "seq", "kind", "dataset", "analyst", "actor", "query", "head")
        return cls(
            **{name: body[name] for name in plain},
            amount=Amount.of(body),
            at=datetime.fromisoformat(body["at"]),
        )


@dataclass(frozen=True)
class Verification:
    """What recomputing the ledger found; ``first_bad`` is a row that contradicts the rest."""

    valid: bool
    accounts: int
    entries: int
    head: str
    first_bad: Mapping[str, Any] | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        names = ("valid", "accounts", "entries", "head", "first_bad")
        return cls(**{name: body[name] for name in names})


@dataclass(frozen=True)
class User:
    """A user; ``disabled`` ones have keys that do not work."""

    name: str
    roles: list[str]
    disabled: bool = False

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["name"], body["roles"], body.get("disabled", False))


@dataclass(frozen=True)
class Key:
    """What may be shown of a key after it was issued."""

    id: str
    created: datetime
    last_used: datetime | None
    revoked: bool

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        used = body["last_used"]
        return cls(
            body["key_id"],
            datetime.fromisoformat(body["created"]),
            None if used is None else datetime.fromisoformat(used),
            body["revoked"],
        )
