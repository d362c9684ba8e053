"""Requests for budget: analysts make them, and owners of datasets decide them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from privypurse.amounts import Amount, Number, decimal_text, limit
from privypurse.connection import Connection, part
from privypurse.frames import Stream


@dataclass(frozen=True)
class BudgetRequest:
    """A request for budget. ``status``: ``open``, ``granted``, ``refused`` or ``withdrawn``.

    ``requested`` and ``granted`` are whole allowances. ``granted`` is None without a grant, and a
    text is None once it is erased.
    """

    id: str
    status: str
    dataset: str
    analyst: str
    requested: Amount
    until: datetime | None
    purpose: str | None
    created: datetime
    decided: datetime | None
    granted: Amount | None
    granted_until: datetime | None
    reason: str | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        plain = ("id", "status", "dataset", "analyst", "purpose", "reason")
        moments = ("until", "decided", "granted_until")
        granted = body["granted"]
        return cls(
            **{name: body[name] for name in plain},
            **dict(zip(moments, map(_moment, map(body.get, moments)), strict=True)),
            created=datetime.fromisoformat(body["created"]),
            requested=Amount.of(body),
            granted=None if granted is None else Amount.of(granted),
        )


class BudgetRequests:
    """Requests for budget; a part of ``PrivyPurse``."""

    _connection: Connection

    def request_budget(
        self,
        dataset: str,
        *,
        epsilon: Number,
        purpose: str,
        delta: Number = 0,
        until: datetime | None = None,
    ) -> BudgetRequest:
        """Ask the owner of a dataset for an allowance: the whole of it, not something on top.

        ``purpose``: at most 2,000 characters on one line. ``until``: a moment with a time zone.
        From then on the allowance would take no new charge. Raises: Problem ``request-open``.
        """
        body = {**limit(epsilon, delta), "purpose": purpose}
        if until is not None:
            body["until"] = until.isoformat()
        path = f"/v1/datasets/{part(dataset)}/requests"
        return BudgetRequest.of(self._connection.json("POST", path, json=body, repeatable=False))

    def budget_requests(self, dataset: str) -> Stream[BudgetRequest]:
        """The requests on a dataset, newest first: all for its owner, your own for an analyst."""
        path = f"/v1/datasets/{part(dataset)}/requests"
        return Stream(map(BudgetRequest.of, self._connection.pages(path)))

    def grant_request(
        self,
        dataset: str,
        id: str,
        *,
        reason: str,
        epsilon: Number | None = None,
        delta: Number | None = None,
        until: datetime | Literal["as requested"] | None = "as requested",
    ) -> BudgetRequest:
        """Grant a request, as it is or changed. ``until=None``: without an end."""
        body: dict[str, Any] = {"decision": "grant", "reason": reason}
        for name, amount in (("epsilon", epsilon), ("delta", delta)):
            if amount is not None:
                body[name] = decimal_text(amount)
        if until is None:
            body["until"] = None
        elif isinstance(until, datetime):
            body["until"] = until.isoformat()
        return self._decide(dataset, id, body)

    def refuse_request(self, dataset: str, id: str, *, reason: str) -> BudgetRequest:
        """Refuse a request; the allowance stays as it is."""
        return self._decide(dataset, id, {"decision": "refuse", "reason": reason})

    def erase_request(self, dataset: str, id: str) -> None:
        """Erase purpose and reason of a request; an open request is withdrawn."""
        self._connection.send("DELETE", f"/v1/datasets/{part(dataset)}/requests/{part(id)}")

    def _decide(self, dataset: str, id: str, body: Mapping[str, Any]) -> BudgetRequest:
        path = f"/v1/datasets/{part(dataset)}/requests/{part(id)}/decision"
        return BudgetRequest.of(self._connection.json("POST", path, json=body, repeatable=False))


def _moment(text: Any) -> Any:
    return None if text is None else datetime.fromisoformat(text)
