"""Requests for budget: an analyst states a purpose, and the owner of the dataset decides.

Danger: purpose and reason are texts of people, and may have to be erased. The journal holds salted
digests of them alone, and no line of the audit trail shows them. Erasing destroys the salt too, so
that nobody can confirm a guess of an erased text.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, literal_column, select, update

from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.expressions import insert_once, now_us
from storage.database.pages import Page, equal, page_of, read_as
from storage.database.tables import budget_request, dataset, users
from storage.errors import NotFound, RequestDecided, RequestOpen
from storage.journal.facts import FactKind, changed
from storage.journal.layouts import salted_digest
from storage.journal.streams import record

_r = budget_request.c
_REQUESTS = (
    select(*_r, dataset.c.name.label("dataset"), users.c.name.label("analyst"))
    .join_from(budget_request, dataset, dataset.c.id == _r.dataset_id)
    .join(users, users.c.id == _r.analyst_id)
)
#: The condition of the unique index of open requests, as a literal so that the index is found.
_IS_OPEN = _r.state == literal_column("0")
#: The columns of a request for budget that each fact about the request states, so that verification
#: can compare them. The texts of the request are not among them.
_STATED = (
    *("dataset_id", "analyst_id", "eps_n", "delta_a", "until_us", "created_us", "state"),
    *("decided_us", "granted_eps_n", "granted_delta_a", "granted_until_us"),
)


class RequestState(IntEnum):
    OPEN = 0
    GRANTED = 1
    REFUSED = 2
    WITHDRAWN = 3


@dataclass(frozen=True, slots=True)
class BudgetRequest:
    """One request. ``loss`` is the whole allowance that it asks for, and ``granted`` the one given.

    ``purpose`` and ``reason`` are None once they are erased, and ``reason`` before a decision.
    """

    id: UUID
    dataset_id: int
    dataset: str
    analyst_id: int
    analyst: str
    loss: PrivacyLoss
    until_us: int | None
    purpose: str | None
    created_us: int
    state: RequestState
    decided_us: int | None
    granted: PrivacyLoss | None
    granted_until_us: int | None
    reason: str | None

    @classmethod
    def of(cls, row: Any) -> BudgetRequest:
        granted = None
        if row.granted_eps_n is not None:
            granted = PrivacyLoss(row.granted_eps_n, row.granted_delta_a)
        loss = PrivacyLoss(row.eps_n, row.delta_a)
        return read_as(cls, row, loss=loss, state=RequestState(row.state), granted=granted)


@dataclass(frozen=True, slots=True)
class Decision:
    """What an owner decides. ``granted``: the whole allowance, or None for a refusal."""

    reason: str
    granted: PrivacyLoss | None = None
    until_us: int | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of ``budget_request`` that hold the decision, without its reason."""
        if self.granted is None:
            return {"state": int(RequestState.REFUSED)}
        return {
            "state": int(RequestState.GRANTED),
            "granted_eps_n": self.granted.epsilon_nano,
            "granted_delta_a": self.granted.delta_atto,
            "granted_until_us": self.until_us,
        }


class BudgetRequests:
    """The requests of one database; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(
        self,
        id: UUID,
        dataset_id: int,
        analyst_id: int,
        loss: PrivacyLoss,
        until_us: int | None,
        purpose: str,
    ) -> BudgetRequest:
        """Stores a new request. Raises: RequestOpen while another is open there."""

        def work(connection: Connection) -> None:
            salt = os.urandom(32)
            once = insert_once(
                connection.dialect.name,
                budget_request,
                *("dataset_id", "analyst_id"),
                where=_IS_OPEN,
            )
            values = {
                "id": id,
                "dataset_id": dataset_id,
                "analyst_id": analyst_id,
                "eps_n": loss.epsilon_nano,
                "delta_a": loss.delta_atto,
                "until_us": until_us,
                "created_us": now_us(),
                "purpose": purpose,
                "salt": salt,
                "purpose_digest": _digest(salt, "purpose", purpose),
            }
            if connection.execute(once.values(**values).returning(_r.id)).one_or_none() is None:
                raise RequestOpen("the analyst has an open request for this dataset")
            _change(connection, id, analyst_id, "request.make", {})

        self._database.write(work)
        return self.find(id)

    def made_since(self, analyst_id: int, since_us: int, most: int) -> int:
        """How many requests the analyst has made since a moment, counted up to ``most``."""
        ids = select(_r.id).where(_r.analyst_id == analyst_id, _r.created_us >= since_us)
        with self._database.read() as connection:
            return len(connection.execute(ids.limit(most)).all())

    def find(self, id: UUID) -> BudgetRequest:
        """One request. Raises: NotFound."""
        with self._database.read() as connection:
            row = connection.execute(_REQUESTS.where(_r.id == id)).one_or_none()
        if row is None:
            raise NotFound("there is no such request")
        return BudgetRequest.of(row)

    def page(
        self, limit: int, cursor: str | None, *, dataset_id: int, analyst_id: int | None = None
    ) -> Page[BudgetRequest]:
        """The requests on one dataset, or those of one analyst there, newest first."""
        own = equal({_r.dataset_id: dataset_id, _r.analyst_id: analyst_id})
        key = (_r.created_us, _r.id)
        return page_of(self._database, _REQUESTS.where(*own), key, limit, cursor, BudgetRequest.of)

    def decide(self, connection: Connection, id: UUID, actor_id: int, decision: Decision) -> None:
        """Stores the decision in the transaction that also sets the allowance.

        Raises: RequestDecided.
        """
        row = _locked(connection, id)
        if row.state != RequestState.OPEN:
            raise RequestDecided("the request is no longer open")
        action = "request.refuse" if decision.granted is None else "request.grant"
        values = {
            **decision.columns,
            "decided_us": now_us(),
            "reason": decision.reason,
            "reason_digest": _digest(row.salt, "reason", decision.reason),
        }
        _change(connection, id, actor_id, action, values)

    def refuse(self, id: UUID, actor_id: int, decision: Decision) -> None:
        """Stores a decision that sets no allowance. Raises: RequestDecided."""
        self._database.write(lambda one: self.decide(one, id, actor_id, decision))

    def erase(self, id: UUID, actor_id: int) -> None:
        """Erases the texts and their salt. An open request is withdrawn. Does nothing twice."""

        def work(connection: Connection) -> None:
            row = _locked(connection, id)
            if row.salt is None:
                return
            values: dict[str, Any] = {"purpose": None, "reason": None, "salt": None}
            if row.state == RequestState.OPEN:
                values |= {"state": int(RequestState.WITHDRAWN), "decided_us": now_us()}
            _change(connection, id, actor_id, "request.erase", values)

        self._database.write(work)


def request_state(row: Any) -> dict[str, Any]:
    """What the fact of a request's last change says; ``row`` is of the table ``budget_request``.

    A digest is that of the text as long as the row has the text.
    """
    state = {name: getattr(row, name) for name in _STATED}
    for name in ("purpose", "reason"):
        text, digest = getattr(row, name), getattr(row, f"{name}_digest")
        state[f"has_{name}"] = text is not None
        if text is not None:
            matches = row.salt is not None and _digest(row.salt, name, text) == bytes(digest or b"")
            state[f"{name}_matches"] = matches
        state[f"{name}_digest"] = None if digest is None else bytes(digest).hex()
    return {**state, "has_salt": row.salt is not None}


def _digest(salt: bytes, name: str, text: str) -> bytes:
    return salted_digest(salt, f"{name}\n{text}".encode())


def _locked(connection: Connection, id: UUID) -> Any:
    """The row, locked until the transaction ends. Raises: NotFound."""
    row = connection.execute(
        select(budget_request).where(_r.id == id).with_for_update()
    ).one_or_none()
    if row is None:
        raise NotFound("there is no such request")
    return row


def _change(
    connection: Connection, id: UUID, actor_id: int, action: str, values: Mapping[str, Any]
) -> None:
    """Changes a row and records the fact. Danger: the audit trail shows the amounts, no text."""
    raised = update(budget_request).where(_r.id == id)
    row = connection.execute(
        raised.values(**values, revision=_r.revision + 1).returning(budget_request)
    ).one()
    names = connection.execute(_REQUESTS.where(_r.id == id)).one()
    detail: dict[str, Any] = PrivacyLoss(row.eps_n, row.delta_a).as_dict()
    if row.granted_eps_n is not None:
        detail["granted"] = PrivacyLoss(row.granted_eps_n, row.granted_delta_a).as_dict()
    record(
        connection,
        changed(
            *(FactKind.REQUEST, id.bytes, actor_id, action, f"{names.dataset}/{names.analyst}"),
            *(detail, request_state(row), row.revision),
        ),
    )
