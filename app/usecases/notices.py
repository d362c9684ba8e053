"""Notices: what a caller should know without asking, worked out anew for each request.

Danger: no notice may depend on records. A low budget follows from charges alone. That a version is
ready, and when, is told to its owner alone.
"""

from collections.abc import Iterator

from accounting.account import AccountRank
from app.contract.budgets import AccountBalance
from app.contract.ledger import ACCOUNTS
from app.contract.models import Listing
from app.contract.notices import NoticeKind, NoticeOut
from app.contract.times import moment
from app.identity.callers import Caller
from app.usecases.accounts.arms import LOW, is_low
from app.usecases.services import Services
from app.usecases.visibility import listing_scope
from storage.ledger.accounts import AccountRow
from storage.queries.notices import (
    RequestNotice,
    decisions,
    freezes,
    last_changes,
    open_requests,
    versions_ready,
)

#: A new version of a dataset stays among the notices for this long, in microseconds.
NEWS_US = 14 * 86_400 * 1_000_000


def page(services: Services, caller: Caller) -> Listing[NoticeOut]:
    """The caller's notices, newest first."""
    sources = (_frozen, _requested, _decided, _ready, _low)
    notices = [notice for source in sources for notice in source(services, caller)]
    notices.sort(key=lambda notice: notice.at, reverse=True)
    return Listing(items=notices, next=None)


def number(services: Services, caller: Caller) -> int:
    """The number of the caller's notices, for the bell on every page."""
    return len(page(services, caller).items)


def _low(services: Services, caller: Caller) -> Iterator[NoticeOut]:
    if "analyst" not in caller.roles:
        return
    own = _accounts(services, caller)
    low = [row for row in own if is_low(AccountBalance.model_validate(row))]
    changes = last_changes(services.database, [row.id for row in low])
    for row in low:
        rank = rank_of(row)
        of = {
            AccountRank.ANALYST_ON_DATASET: f"your allowance for {row.dataset}",
            AccountRank.ANALYST: "your limit over all datasets",
            AccountRank.KEY: "the limit of this key",
        }[rank]
        yield NoticeOut(
            kind="budget_low",
            at=moment(changes[row.id]),
            text=f"{of[0].upper()}{of[1:]} has ended."
            if row.is_over
            else f"Less than {LOW} % of {of} is left.",
            dataset=row.dataset,
            account=ACCOUNTS[rank],
        )


def _accounts(services: Services, caller: Caller) -> list[AccountRow]:
    """The caller's accounts, the one over all datasets, and that of the key that asks."""
    ledger, scope = services.ledger, caller.scope
    rows = ledger.accounts(analyst_id=caller.id, datasets=scope.datasets)
    more = [ledger.account(None, caller.id)]
    if scope.limited_key is not None:
        more.append(ledger.accounts_of_keys(caller.id).get(scope.limited_key))
    return [*rows, *(row for row in more if row is not None)]


def rank_of(row: AccountRow) -> AccountRank:
    """Which of an analyst's accounts this is."""
    if row.key_id:
        return AccountRank.KEY
    return AccountRank.ANALYST if row.dataset is None else AccountRank.ANALYST_ON_DATASET


def _ready(services: Services, caller: Caller) -> Iterator[NoticeOut]:
    if "owner" not in caller.roles:
        return
    since_us = services.database.now_us() - NEWS_US
    for one in versions_ready(services.database, since_us, caller.id):
        yield NoticeOut(
            kind="version_ready",
            at=moment(one.at_us),
            text=f"Version {one.version} of {one.dataset} is ready: queries read it.",
            dataset=one.dataset,
            version=one.version,
        )


def _requested(services: Services, caller: Caller) -> Iterator[NoticeOut]:
    if "owner" not in caller.roles:
        return
    for one in open_requests(services.database, caller.id):
        text = f"{one.analyst} requests budget on {one.dataset}, and waits for your decision."
        yield _about_request("request_made", one, text)


def _decided(services: Services, caller: Caller) -> Iterator[NoticeOut]:
    if "analyst" not in caller.roles:
        return
    since_us = services.database.now_us() - NEWS_US
    for one in decisions(services.database, since_us, caller.id, caller.scope.datasets):
        text = f"Your request for budget on {one.dataset} was {one.state.name.lower()}."
        yield _about_request("request_decided", one, text)


def _about_request(kind: NoticeKind, one: RequestNotice, text: str) -> NoticeOut:
    at, id = moment(one.at_us), str(one.id)
    return NoticeOut(kind=kind, at=at, text=text, dataset=one.dataset, request=id)


def _frozen(services: Services, caller: Caller) -> Iterator[NoticeOut]:
    if caller.roles.isdisjoint({"analyst", "owner", "auditor"}):
        return
    for one in freezes(services.database, **listing_scope(caller)):
        of = "over all datasets" if one.dataset is None else f"of {one.dataset}"
        yield NoticeOut(
            kind="ledger_frozen",
            at=moment(one.at_us),
            text=f"An account {of} is frozen and takes no charge until the operator has looked.",
            dataset=one.dataset,
        )
