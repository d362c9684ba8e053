"""Datasets, accounts, ledger entries, users and keys, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Self

from privypurse.amounts import Amount, Charge
from privypurse.levels import Column, columns_of


@dataclass(frozen=True)
class Dataset:
    """The public description of a dataset; ``description`` is the whole reply of the service.

    An admin sees the name alone: the other fields are empty then.
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
class Balance:
    """A limit, its spent part and its remaining part; ``spent`` includes running queries.

    ``largest_epsilon``: the largest ε of a single query that still fits. In an account that counts
    in ρ it may exceed what remains of ε. ``fits_more``: in such an account, how many more queries
    fit at ε = 0.1, by kind; else empty. ``until``: from then on nothing remains; None for no end.
    """

    allowance: Amount
    spent: Amount
    remaining: Amount
    largest_epsilon: Decimal
    until: datetime | None = field(default=None, kw_only=True)
    fits_more: Mapping[str, int] = field(default_factory=dict, kw_only=True, hash=False)

    @staticmethod
    def amounts(body: Mapping[str, Any]) -> dict[str, Any]:
        amounts = {name: Amount.of(body[name]) for name in ("allowance", "spent", "remaining")}
        largest = body.get("largest_epsilon", body["remaining"]["epsilon"])
        until = body.get("until")
        return {
            **amounts,
            "largest_epsilon": Decimal(largest),
            "until": None if until is None else datetime.fromisoformat(until),
            "fits_more": body.get("fits_more", {}),
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Balance:
        return Balance(**cls.amounts(body))


@dataclass(frozen=True)
class Account(Balance):
    """The balance of one analyst on one dataset. Owners pass ``etag`` as ``if_match``."""

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
    """All accounts of a dataset, its cap, and the loss if all analysts combine their answers."""

    accounts: list[Account]
    cap: Balance
    exposure: Amount
    exposure_at_most: Amount

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            [Account.of(one) for one in body["items"]],
            Balance.of(body["cap"]),
            Amount.of(body["exposure"]["spent"]),
            Amount.of(body["exposure"]["at_most"]),
        )


@dataclass(frozen=True)
class Point:
    """The charges of one day, of one kind of query, or of one mechanism."""

    label: str
    queries: int
    charged: Amount

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["label"], body["queries"], Amount.of(body["charged"]))


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger: one change of one account.

    ``key`` is the id of the API key whose own account it is, else None. ``amount`` has an infinite
    ``epsilon`` for a charge of Gaussian noise, which is counted in ρ alone.
    """

    account: str
    seq: int
    kind: str
    dataset: str | None
    analyst: str | None
    actor: str
    query: str | None
    amount: Charge
    at: datetime
    head: str
    key: str | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        plain = ("account", "seq", "kind", "dataset", "analyst", "actor", "query", "head")
        return cls(
            **{name: body[name] for name in plain},
            amount=Charge.of(body),
            at=datetime.fromisoformat(body["at"]),
            key=body.get("key"),
        )


@dataclass(frozen=True)
class Verification:
    """The result of recomputing the ledger; ``first_bad`` is the first row that contradicts it.

    ``valid``: False if there is such a row. ``since``: if the service read only new entries, the
    moment at which it last read everything and found nothing; else None.
    """

    valid: bool
    accounts: int
    entries: int
    head: str
    first_bad: Mapping[str, Any] | None
    since: datetime | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        names = ("accounts", "entries", "head", "first_bad")
        since = body.get("valid_since")
        return cls(
            valid=body["first_bad"] is None,
            since=None if since is None else datetime.fromisoformat(since),
            **{name: body[name] for name in names},
        )


@dataclass(frozen=True)
class Notice:
    """Something that concerns you now; ``text`` says it in a sentence.

    ``kind``: ``budget_low``, ``version_ready``, ``ledger_frozen``, ``request_made`` or
    ``request_decided``. ``request``: the id of a request for budget, else None.
    """

    kind: str
    at: datetime
    text: str
    dataset: str | None
    request: str | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(
            *(body["kind"], datetime.fromisoformat(body["at"]), body["text"]),
            *(body.get("dataset"), body.get("request")),
        )


@dataclass(frozen=True)
class User:
    """A user. No key of a ``disabled`` user is accepted."""

    name: str
    roles: list[str]
    disabled: bool = False

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        return cls(body["name"], body["roles"], body.get("disabled", False))


@dataclass(frozen=True)
class Key:
    """The public facts about a key; the key itself appears only when it is issued.

    ``until``, ``datasets`` and ``budget`` are None where the key has no such restriction.
    """

    id: str
    created: datetime
    last_used: datetime | None
    revoked: bool
    until: datetime | None = None
    datasets: list[str] | None = None
    budget: Balance | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        last_used, until, budget = (body.get(name) for name in ("last_used", "until", "budget"))
        return cls(
            body["key_id"],
            datetime.fromisoformat(body["created"]),
            None if last_used is None else datetime.fromisoformat(last_used),
            body["revoked"],
            None if until is None else datetime.fromisoformat(until),
            body.get("datasets"),
            None if budget is None else Balance.of(budget),
        )
