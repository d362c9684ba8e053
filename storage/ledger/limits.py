"""Opening accounts and changing their limits; each leaves an entry.

An analyst's account over all datasets is opened with everything that was charged before. Each
running query has an entry of its own, so that its release gives this charge back as well. One more
entry holds the sum of all other charges to the analyst's accounts.

An account that gets its first limit in ρ is charged the ρ of what it did not count before, by an
entry that names no query and has neither ε nor δ.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy import Connection, func, select, text, update

from accounting.account import Account, AccountRank, Limit, admits, counts_rho
from accounting.errors import BelowSpent
from accounting.measures import MEASURES
from accounting.privacy_loss import LARGEST, PrivacyLoss
from accounting.rho import pure_femto
from storage.database.expressions import insert_once, now_us, read_now
from storage.database.failures import Again
from storage.database.tables import budget_account, entry, query
from storage.errors import LedgerAlarm, PreconditionFailed
from storage.journal.layouts import EMPTY_HEAD, EntryKind, account_subject
from storage.ledger.accounts import SUMS, AccountKey, AccountRow, find_account
from storage.ledger.entries import NOTHING, Cause, change_account, charge_of
from storage.ledger.requests import QueryState

#: The kinds of entries that change the charged amounts of an account.
MOVING = [int(EntryKind.CHARGE), int(EntryKind.RELEASE), int(EntryKind.UNFREEZE)]

_a, _q = budget_account.c, query.c


def open_account(
    connection: Connection, key: AccountKey, limit: Limit, actor_id: int
) -> AccountRow | None:
    """Opens an account whose genesis entry grants ``limit``; returns None if it exists already."""
    _check(key, limit)
    opened = connection.execute(
        insert_once(connection.dialect.name, budget_account, *key._fields).returning(
            _a.id, now_us()
        ),
        {
            **key._asdict(),
            **{measure.limit: 0 for measure in MEASURES},
            "head": EMPTY_HEAD,
        },
    ).one_or_none()
    if opened is None:
        return None
    account_id, at_us = opened
    subject = account_subject(*key)
    genesis = Cause(EntryKind.GENESIS, actor_id, at_us, limit.amounts, subject=subject)
    if change_account(connection, account_id, genesis) is None:
        raise LedgerAlarm("a new account has entries already")
    return find_account(connection, key)


#: Returns the limit to set. The argument is the present limit, or None if the account is being
#: opened.
NewLimit = Callable[[Limit | None], Limit]


class End(NamedTuple):
    """From ``until_us`` on, a moment in microseconds, an account takes no new charge; None: never.

    Danger: a change of a limit that names no end must keep the end that there is.
    """

    until_us: int | None


def set_limit(
    connection: Connection,
    key: AccountKey,
    limit: Limit | NewLimit,
    actor_id: int,
    if_match: str | None = None,
    end: End | None = None,
) -> tuple[AccountRow, bool]:
    """Opens the account with ``limit``, or changes the limit of an existing account to it.

    Danger: a new limit that keeps a part of the old one must be a function of the old one. Then the
    row is locked between the two, so that no change of another is lost.

    Returns the account, and whether anything has changed.

    ``end`` replaces the end of the account; without it, the account keeps the end that it has.

    An account that has charges may fall to any limit which they fit by ε or by ρ.
    A frozen account may change its limit, and stays frozen.
    Raises: BelowSpent if more than ``limit`` is charged, also to a new account over all datasets;
    PreconditionFailed if ``if_match`` is not the current ETag. ``*`` matches any existing account.
    """
    new_limit = _same(limit) if isinstance(limit, Limit) else limit
    ranges_over_all = key.rank == AccountRank.ANALYST
    if ranges_over_all:
        _wait_for_charges(connection)
    if if_match is None:
        opened = open_account(connection, key, new_limit(None), actor_id)
        if opened is not None:
            opened = _with_end(connection, opened, end)
            if ranges_over_all:
                opened = _charged(connection, opened, key.analyst_id, actor_id)
            return opened, True
    # The row of the account is locked until the change is written. Otherwise concurrent changes
    # would conflict, and all but one would have to start again.
    before = find_account(connection, key, hold=True)
    if before is None:
        raise PreconditionFailed("there is no such account yet")
    if if_match not in (None, "*", before.etag):
        raise PreconditionFailed("the account has changed")
    old = before.account.limit
    limit = new_limit(old)
    _check(key, limit)
    if limit == old and (end is None or end.until_us == before.until_us):
        return before, False
    charged, at_us = before.account.charged, read_now(connection)
    causes = []
    if limit.rho_femto and not old.rho_femto:
        rho = rho_to_fill(connection, before.id)
        charged += PrivacyLoss(0, 0, rho)
        if rho:
            causes.append(Cause(EntryKind.CHARGE, actor_id, at_us, (0, 0, rho, 0)))
    if not admits(limit.amounts, charged.amounts, NOTHING):
        lost = old.composition_atto if limit.composition_atto < old.composition_atto else 0
        raise BelowSpent(spent=before.account.charged, has_rho=old.has_rho, lost_atto=lost)
    more = tuple(new - was for new, was in zip(limit.amounts, old.amounts, strict=True))
    causes.append(Cause(EntryKind.LIMIT_CHANGE, actor_id, at_us, more))
    for seq, cause in enumerate(causes, start=before.seq):
        if change_account(connection, before.id, cause, seen=seq) is None:
            raise Again  # the account has changed meanwhile, so the transaction starts again
    account = Account(limit, charged)
    changed = replace(before, account=account, seq=before.seq + len(causes))
    return _with_end(connection, changed, end), True


def _with_end(connection: Connection, account: AccountRow, end: End | None) -> AccountRow:
    """Sets the end of an account whose row this transaction has locked."""
    if end is None:
        return account
    until_us = end.until_us
    connection.execute(update(budget_account).where(_a.id == account.id).values(until_us=until_us))
    is_over = until_us is not None and until_us <= read_now(connection)
    return replace(account, until_us=until_us, is_over=is_over)


def rho_to_fill(connection: Connection, account_id: int) -> int:
    """The ρ of all that the account was charged and did not count in ρ, in femto-ρ.

    A charge counts as any release of its ε. One entry for several charges has at least their ρ,
    because ρ grows faster than ε.
    """
    e = entry.c
    moves = select(e.kind, e.d_eps_n, func.count()).where(
        e.account_id == account_id, e.d_rho_f.is_(None), e.d_eps_n != 0, e.kind.in_(MOVING)
    )
    rho = 0
    for _, epsilon, entries in connection.execute(moves.group_by(e.kind, e.d_eps_n)):
        rho += entries * (pure_femto(epsilon) if epsilon > 0 else -pure_femto(-epsilon))
    fills = select(e.d_rho_f).where(
        e.account_id == account_id, e.kind == int(EntryKind.CHARGE), e.query_id.is_(None)
    )
    return max(0, rho - sum(map(int, connection.execute(fills).scalars())))


def largest_composition(connection: Connection, account_id: int) -> int:
    """The largest δ_c that the account ever had, in units of 10⁻¹⁸."""
    e = entry.c
    # The changes of the limit are sorted in Python. SQLite would read all entries of the account to
    # sort them by number.
    moves = select(e.seq, e.d_unpriced).where(
        e.account_id == account_id,
        e.query_id.is_(None),
        e.kind.in_([int(EntryKind.GENESIS), int(EntryKind.LIMIT_CHANGE)]),
    )
    moved = sorted(map(tuple, connection.execute(moves)))
    return max(accumulate(by or 0 for _, by in moved), default=0)


def _wait_for_charges(connection: Connection) -> None:
    """Waits for charges and releases under way; none begins before this transaction ends.

    A charge that misses the new account would not count against it. On PostgreSQL a charge locks
    the table until it is committed, and this function waits for that lock. On SQLite write
    transactions never overlap.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("LOCK TABLE budget_account IN ACCESS EXCLUSIVE MODE"))


def _charged(
    connection: Connection, account: AccountRow, analyst_id: int, actor_id: int
) -> AccountRow:
    """Charges a new account over all datasets with everything that was charged before.

    Each running query gets an entry of its own. Raises: BelowSpent.
    """
    limit = account.account.limit
    in_rho = counts_rho(limit.epsilon_nano)
    charged = select(*SUMS).where(
        _a.rank == int(AccountRank.ANALYST_ON_DATASET), _a.analyst_id == analyst_id
    )
    # The charges of the analyst's accounts are added up in Python, because their sum may exceed the
    # 64 bits of a database's integer.
    spent = sum((PrivacyLoss(*row) for row in connection.execute(charged)), PrivacyLoss(0))
    # The new account is also refused if earlier charges have no finite ε. They could fit by ρ
    # alone, and an account over all datasets has no limit in ρ.
    if not admits(limit.amounts, NOTHING, spent.amounts):
        raise BelowSpent(spent=spent)
    # The running queries of the analyst are charged to the new account, with the moment of its
    # first entry. Verification recognises these charges by it, because later ones have a later
    # moment.
    genesis = select(entry.c.at_us).where(entry.c.account_id == account.id, entry.c.seq == 1)
    at_us = connection.execute(genesis).scalar_one()
    own = _q.analyst_id == analyst_id, _q.state == int(QueryState.RUNNING)
    running = connection.execute(select(query).where(*own).order_by(_q.id)).mappings().all()
    causes = [charge_of(row, at_us) for row in running]  # type: ignore[arg-type]
    # Danger: an account that counts ε and δ alone holds none of the ρ of its running queries. So
    # its sum of charges less these queries may be negative in ρ, and is then raised to 0.
    sums = zip(spent.amounts, *(one.amounts for one in causes), strict=True)
    rest = PrivacyLoss(*(max(0, whole - sum(map(int, parts))) for whole, *parts in sums))
    if rest != PrivacyLoss(0):
        causes.insert(0, Cause(EntryKind.CHARGE, actor_id, at_us, rest.amounts))
    for cause in (one.counted(in_rho) for one in causes):
        if change_account(connection, account.id, cause) is None:
            raise LedgerAlarm("a new account refused what it was opened with")
    charges = spent if in_rho else PrivacyLoss(*spent.amounts[:2])
    return replace(account, account=Account(limit, charges), seq=account.seq + len(causes))


def _same(limit: Limit) -> NewLimit:
    return lambda _: limit


def _check(key: AccountKey, limit: Limit) -> None:
    if not limit.loss.fits(LARGEST):
        raise ValueError("a limit is at most ε = 10⁹ and below δ = 1")
    if key.rank == AccountRank.ANALYST and limit.rho_femto:
        # When an account over all datasets is opened, it is charged with the analyst's earlier
        # queries. This charge and its verification add up ε and δ alone, so such an account has no
        # limit in ρ.
        raise ValueError("an account over all datasets has no limit in ρ")
