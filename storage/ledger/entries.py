"""The only way an account changes: one conditional UPDATE that also links entries to its chain.

Danger: two concurrent requests for the last of a budget both pass a check made before either has
written. So the guard is in the WHERE clause of the UPDATE, with the sequence number that the new
head follows. The head is computed while the row's lock or SQLite's write lock is held. It also
names the epoch of the schema, so a process that a later version has replaced changes no account.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, column, select, update

from accounting.account import admits
from accounting.measures import MEASURES
from storage.database.statements import Each, InsertEach
from storage.database.tables import EPOCH, budget_account, entry
from storage.database.types import Big
from storage.journal.layouts import EntryKind, entry_digests, next_head, request_subject
from storage.ledger.accounts import LIMITS, MOVED, MOVED_LIMIT, SUMS

_c = budget_account.c
NOTHING = (0,) * len(MEASURES)
#: The columns of the table ``query`` with the amounts of the query's charge, one per measure.
PRICE = tuple(measure.column for measure in MEASURES)

Guard = Callable[[Sequence[Any]], ColumnElement[bool]]


def _change(guard: Guard | None, moved: Sequence[Any] = (), **values: int) -> Each:
    """The UPDATE that adds the amounts to the columns ``moved`` if ``guard`` admits the amounts."""

    names = MOVED_LIMIT if moved is LIMITS else MOVED

    def statement(each: Any) -> Any:
        amounts = [getattr(each, name) for name in names]
        guards = [] if guard is None else [guard(amounts)]
        settings = {_c[name]: value for name, value in values.items()}
        moves = {summed: summed + by for summed, by in zip(moved, amounts, strict=False)}
        return (
            update(budget_account)
            .where(_c.id == each.id, _c.seq == each.seq, _c.epoch == EPOCH, *guards)
            .values({**moves, **settings, _c.seq: each.last, _c.head: each.head})
            .returning(_c.id)
        )

    moving = [entry.c[name] for name in names]
    return Each((_c.id, _c.seq, _c.head, column("last", Big), *moving), statement)


def _fits(charge: Sequence[Any]) -> ColumnElement[bool]:
    fits: ColumnElement[bool] = (_c.frozen == 0) & admits(LIMITS, SUMS, charge)
    return fits


def _limits_hold(change: Sequence[Any]) -> ColumnElement[bool]:
    limits = [limit + by for limit, by in zip(LIMITS, change, strict=True)]
    return admits(limits, SUMS, NOTHING)  # type: ignore[no-any-return]


CHARGE = _change(_fits, SUMS)
CHANGES: dict[EntryKind, Each] = {
    EntryKind.CHARGE: CHARGE,
    EntryKind.RELEASE: _change(None, SUMS),  # a release of a charge has negative amounts
    EntryKind.LIMIT_CHANGE: _change(_limits_hold, LIMITS),
    EntryKind.FREEZE: _change(lambda _: _c.frozen == 0, frozen=1),
    # Adds the charges that were lost when an old backup was restored, and then unfreezes the
    # account.
    EntryKind.UNFREEZE: _change(lambda _: _c.frozen == 1, SUMS, frozen=0),
    EntryKind.GENESIS: _change(lambda _: _c.seq == 0, LIMITS),
}
#: Charges the ρ of earlier queries, when an account first counts in ρ. This charge is for no new
#: release, so it is possible while the account is frozen.
FILL = _change(lambda charge: admits(LIMITS, SUMS, charge), SUMS)
#: One cause, such as the charge for a query, makes an entry on each of several accounts. These
#: columns differ between those entries, which share the values of all other columns.
_OWN = ("account_id", "seq", "digest", "head")
_SHARED = ("kind", "query_id", "actor", "at_us", "bound", *MOVED_LIMIT)
ENTRIES = InsertEach(entry, (*_OWN, *_SHARED))


class Cause(NamedTuple):
    """The reason for an entry: its kind, actor, moment and signed amounts, one per measure.

    A limit has the change of its permission after them, as ``Limit.amounts``.

    ``in_rho`` is False if only ε and δ are counted; the other amounts are 0 then.
    """

    kind: EntryKind
    actor: int
    at_us: int
    amounts: tuple[int, ...] = NOTHING
    query_id: UUID | None = None
    subject: bytes | None = None
    in_rho: bool = True

    def counted(self, in_rho: bool) -> Cause:
        """The cause of an entry on an account that counts in ρ, or on one that does not."""
        if in_rho or not self.in_rho:
            return self
        return self._replace(amounts=(*self.amounts[:2], 0, 0), in_rho=False)

    @property
    def listed(self) -> tuple[int, ...]:
        """The amounts that the entry holds."""
        return self.amounts if self.in_rho else self.amounts[:2]


def charge_of(query: Mapping[str, Any], at_us: int) -> Cause:
    """The charge for a row of the table ``query``; its subject is a digest of the request."""
    subject = request_subject(
        *(query["id"].bytes, query["analyst_id"], query["dataset_id"]),
        *(query["idem_key"].encode(), query["body_hash"], query["request"]),
    )
    # Queries from before schema 0009 have no ρ, so 0 stands for their missing amounts.
    amounts = tuple([query[column] or 0 for column in PRICE])
    charge = Cause(EntryKind.CHARGE, query["analyst_id"], at_us, amounts, query["id"], subject)
    return charge.counted(query["rho_f"] is not None)


class SharedEntry:
    """The fields that the entries of one cause have in common, computed once for all accounts."""

    def __init__(self, cause: Cause) -> None:
        id = None if cause.query_id is None else cause.query_id.bytes
        what = (cause.actor, cause.listed, cause.at_us, cause.subject)
        self.amounts, self.digest_of = cause.amounts, entry_digests(cause.kind, id, *what)
        named = (int(cause.kind), cause.query_id, cause.actor, cause.at_us, cause.subject)
        missing = (None,) * (len(MOVED_LIMIT) - len(cause.listed))
        self.values = (*named, *cause.listed, *missing)


class Linking:
    """A locked account, and the new entries of its hash chain.

    ``row`` has the account's id, sequence number and head, read under the lock. ``seq`` and
    ``head`` are those after the new entries.
    """

    def __init__(self, row: Any) -> None:
        self.id, self.seq, self.head = row.id, row.seq, row.head
        self.entries: list[tuple[Any, ...]] = []

    def add(self, entry: SharedEntry) -> None:
        """Links an entry in memory; the caller stores ``entries`` and the new head."""
        digest = entry.digest_of(self.id)
        self.head = next_head(self.head, digest)
        self.seq += 1
        self.entries.append((self.id, self.seq, digest, self.head, *entry.values))


def change_account(
    connection: Connection, account_id: int, cause: Cause, seen: int | None = None
) -> Linking | None:
    """Changes one account as ``cause`` describes, and returns it with its new entry.

    Returns None and changes nothing if the guard refuses, or if the account does not exist or its
    sequence number is no longer ``seen``.
    """
    locked = select(_c.id, _c.seq, _c.head).where(_c.id == account_id).with_for_update()
    row = connection.execute(locked).one_or_none()
    if row is None or seen not in (None, row.seq):
        return None
    account = Linking(row)
    account.add(SharedEntry(cause))
    fills = cause.kind == EntryKind.CHARGE and cause.query_id is None
    change = FILL if fills else CHANGES[cause.kind]
    # The amounts come from the cause of the entry. If the cause changes a limit, they include the
    # change of the permission of releases without a finite ε, which ``account.values`` lacks.
    values = (row.id, row.seq, account.head, account.seq, *cause.amounts)
    if not change.of_each(connection, [values])():
        return None
    ENTRIES.insert(connection, account.entries)
    return account
