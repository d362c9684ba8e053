"""The ledger as it may be read: every change of every account, in the order of its chain."""

from __future__ import annotations

from datetime import datetime
from threading import Lock
from typing import Annotated, Literal, Self

from fastapi import Query
from pydantic import StringConstraints

from accounting.privacy_loss import format_units
from app.contract.errors import Busy
from app.contract.models import NAME_PATTERN, Listing, Reply
from app.contract.problems import problems
from app.contract.times import moment
from app.http.access import CurrentUser, allow
from app.http.dependencies import DEFAULT_LIMIT, DatasetFilter, PageCursor, PageLimit, ServicesDep
from app.http.route import router
from storage.assurance.heads import read_heads
from storage.assurance.verification import verify
from storage.errors import InvalidCursor
from storage.ledger.ledger import EntryRow
from storage.people.users import User

api = router(prefix="/v1", tags=["ledger"])

EntryKind = Literal["genesis", "charge", "release", "limit_change", "freeze", "unfreeze"]
#: ``?kind=``: charges only, for example.
KindFilter = Annotated[EntryKind | None, Query(description="Only entries of this kind.")]
#: ``?analyst=``: a name, and nothing that a database might refuse to compare.
AnalystFilter = Annotated[
    Annotated[str, StringConstraints(pattern=NAME_PATTERN)] | None,
    Query(description="Only accounts of this analyst."),
]


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

    @classmethod
    def of(cls, row: EntryRow) -> Self:
        return cls(
            account=ACCOUNTS[row.rank.name],
            seq=row.seq,
            kind=row.kind,
            dataset=row.dataset,
            analyst=row.analyst,
            actor=row.actor,
            query=None if row.query_id is None else str(row.query_id),
            epsilon=format_units(row.epsilon_nano, 9),
            delta=format_units(row.delta_atto, 18),
            at=moment(row.at_us),
            head=row.head.hex(),
        )


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


ACCOUNTS = {"ANALYST_ON_DATASET": "analyst", "ANALYST": "analyst_total", "DATASET": "cap"}


def scope(viewer: User) -> dict[str, int]:
    """Whose rows a caller may list: everyone's for auditors, else own and of own datasets."""
    if "auditor" in viewer.roles:
        return {}
    own = {"analyst": "analyst_id", "owner": "owner_id"}
    return {filter: viewer.id for role, filter in own.items() if role in viewer.roles}


@api.get(
    "/ledger",
    dependencies=[allow("analyst", "owner", "auditor")],
    responses=problems(InvalidCursor),
)
def list_entries(
    viewer: CurrentUser,
    services: ServicesDep,
    dataset: DatasetFilter = None,
    kind: KindFilter = None,
    analyst: AnalystFilter = None,
    limit: PageLimit = DEFAULT_LIMIT,
    cursor: PageCursor = None,
) -> Listing[EntryOut]:
    """Entries, newest first: an analyst's own, an owner's datasets', for auditors all."""
    page = services.ledger.entries(
        **scope(viewer), dataset=dataset, kind=kind, analyst=analyst, limit=limit, cursor=cursor
    )
    return Listing(items=[EntryOut.of(row) for row in page.items], next=page.next)


#: A recomputation reads all there is: one at a time in a process.
_VERIFYING = Lock()


@api.get(
    "/ledger/verification",
    dependencies=[allow("analyst", "owner", "auditor")],
    responses=problems(Busy),
)
def verify_ledger(viewer: CurrentUser, services: ServicesDep) -> VerificationOut:
    """Recompute the chains, sums and endings of the accounts that the caller may see."""
    if not _VERIFYING.acquire(blocking=False):
        raise Busy(retry_after=5)
    try:
        heads = services.settings.heads_file()
        published = read_heads(heads) if heads.is_file() else None
        found = verify(services.database, **scope(viewer), heads=published, released_only=True)
    finally:
        _VERIFYING.release()
    bad = found.first_bad
    return VerificationOut(
        valid=found.valid,
        accounts=found.accounts,
        entries=found.entries,
        head=found.head.hex(),
        first_bad=None if bad is None else BadRow(table=bad.table, row=bad.row, reason=bad.reason),
    )
