"""Notices of all users within some time, as the operator's webhook sends them.

Danger: an event must depend on records no more than the notice that its owner or analyst reads. So
it names datasets, people and requests, and no text that people wrote, amount, answer or record.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from app.contract.budgets import AccountBalance
from app.contract.ledger import ACCOUNTS
from app.contract.notices import NoticeKind
from app.usecases.accounts.arms import is_low
from app.usecases.notices import rank_of
from storage.database.database import Database
from storage.ledger.accounts import AccountRow
from storage.queries.notices import (
    RequestNotice,
    changed_accounts,
    decisions,
    freezes,
    limits_set_at,
    open_requests,
    versions_ready,
)


@dataclass(frozen=True)
class Event:
    """One notice. The same notice has the same ``id``, whichever process reads it and when.

    ``account``: the id of an account that is low; None for other kinds.
    """

    id: str
    kind: NoticeKind
    data: dict[str, Any]
    account: int | None = None


def between(database: Database, since_us: int, until_us: int) -> tuple[list[Event], set[int]]:
    """The events from ``since_us`` to before ``until_us``, in microseconds.

    A budget stays low, so the event of a low budget comes again, with its id, at every change of
    its account until its limit is set again, be it to the same amount as once before. Returns also
    the ids of the accounts that have changed, low or not.
    """
    events = [
        *(_about_request("request_made", one) for one in open_requests(database)),
        *(_about_request("request_decided", one) for one in decisions(database, since_us)),
        *(
            (
                one.at_us,
                _event("version_ready", one.at_us, dataset=one.dataset, version=one.version),
            )
            for one in versions_ready(database, since_us)
        ),
        *(
            (one.at_us, _event("ledger_frozen", one.at_us, dataset=one.dataset))
            for one in freezes(database)
        ),
    ]
    changed = changed_accounts(database, since_us, until_us)
    low = [row for row in changed if is_low(AccountBalance.model_validate(row))]
    set_at = limits_set_at(database, [row.id for row in low])
    within = [event for at_us, event in events if since_us <= at_us < until_us]
    within += [_about_account(row, set_at[row.id]) for row in low]
    return within, {row.id for row in changed}


def _about_request(kind: NoticeKind, one: RequestNotice) -> tuple[int, Event]:
    data = {"dataset": one.dataset, "analyst": one.analyst, "request": str(one.id)}
    if kind == "request_decided":
        data["decision"] = one.state.name.lower()
    return one.at_us, _event(kind, one.at_us, **data)


def _about_account(row: AccountRow, set_at: int) -> Event:
    data = {"dataset": row.dataset, "analyst": row.analyst, "account": ACCOUNTS[rank_of(row)]}
    return replace(_event("budget_low", (row.id, set_at, row.is_over), **data), account=row.id)


def _event(kind: NoticeKind, state: Any, **data: Any) -> Event:
    """``state``: what tells this event from others of the same kind and data."""
    digest = sha256(repr((kind, state, sorted(data.items()))).encode()).hexdigest()
    return Event(f"msg_{digest[:32]}", kind, data)
