"""Recomputes the ledger: the chain and sums of every account, and the charges of every query.

The hash chain of an account binds its entries. The column ``subject`` of an entry binds the analyst
and the dataset of the account, or the request that was charged. The digest of a settlement binds
the end of its query. The hashes do not bind the working state of a running query: its lease, the
published version that it reads, and any attempt after the first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from sqlalchemy import ColumnElement, or_, select

from storage.assurance.heads import Published
from storage.assurance.verify_chains import Bad, Chains, check_chains
from storage.assurance.verify_queries import check_queries
from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.snapshot import snapshot
from storage.database.tables import budget_account, dataset, query
from storage.queries.entry_pages import EntryRow, entry_with_head

__all__ = ["Bad", "Verification", "check_receipt", "verify"]

_a = budget_account.c


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification, with the numbers of accounts and entries that it covered.

    ``head``: a digest of the heads of these accounts. ``first_bad``: the first row that contradicts
    the others, None if the ledger is valid.
    """

    accounts: int
    entries: int
    head: bytes
    first_bad: Bad | None

    @property
    def valid(self) -> bool:
        return self.first_bad is None


def verify(
    database: Database,
    *,
    analyst_id: int | None = None,
    owner_id: int | None = None,
    heads: Mapping[int, Published] | None = None,
    released_only: bool = False,
) -> Verification:
    """Recompute the accounts of an analyst and of an owner's datasets, or all accounts.

    Args:
        heads: the published states by account; the chains must contain them.
        released_only: treat a query as running until its release instant. Otherwise the result
            of the verification or its duration could reveal an answer before that instant.
    """
    concerned, queries = _scope(analyst_id, owner_id)
    with snapshot(database) as connection:
        accounts = select(budget_account).order_by(_a.id)
        if concerned is not None:
            accounts = accounts.where(concerned)
        rows = {row.id: row for row in connection.execute(accounts)}
        chains = Chains(rows, concerned)
        bad = check_chains(connection, chains, heads)
        if bad is None:
            now = connection.execute(select(now_us())).scalar_one() if released_only else None
            bad = check_queries(connection, chains, queries, now)
        return Verification(len(rows), chains.entries, _head(chains), bad)


def check_receipt(database: Database, head: bytes) -> tuple[EntryRow, Bad | None] | None:
    """The entry whose head a receipt states, and the first contradiction in its chain or None.

    Returns None if no entry has this head.
    """
    with snapshot(database) as connection:
        entry = entry_with_head(connection, head)
        if entry is None:
            return None
        own = _a.id == entry.account_id
        rows = {row.id: row for row in connection.execute(select(budget_account).where(own))}
        return entry, check_chains(connection, Chains(rows, own), None)


Condition = ColumnElement[bool]


def _scope(
    analyst_id: int | None, owner_id: int | None
) -> tuple[Condition | None, Condition | None]:
    """The SQL conditions for accounts and for queries of an analyst or owner; None for all."""
    accounts: list[Condition] = []
    queries: list[Condition] = []
    if analyst_id is not None:
        accounts.append(_a.analyst_id == analyst_id)
        queries.append(query.c.analyst_id == analyst_id)
    if owner_id is not None:
        owned = select(dataset.c.id).where(dataset.c.owner_id == owner_id)
        # No owner may see an analyst's account over all datasets.
        accounts.append(_a.dataset_id.in_(owned))
        queries.append(query.c.dataset_id.in_(owned))
    return (or_(*accounts), or_(*queries)) if accounts else (None, None)


def _head(chains: Chains) -> bytes:
    whole = sha256()
    for id, row in sorted(chains.rows.items()):
        whole.update(id.to_bytes(8, "big") + row.seq.to_bytes(8, "big") + row.head)
    return whole.digest()
