"""Exactly the room there is: many clients of several processes against a quarter of their requests.

With one account the analyst's allowance binds, with two the dataset's cap binds two analysts, with
three an analyst's overall limit binds on two datasets. Every request is a new query; what is
granted is settled. Not one more or less may be granted than there is room for.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path

from sqlalchemy import func, select

from accounting.account import AccountRank
from accounting.errors import BudgetExhausted, CapExhausted
from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.ledger import accounts
from benchmarks.ledger.accounts import AMPLE, CHARGE, Pair, request
from benchmarks.ledger.databases import KINDS, databases, folder
from benchmarks.result import Result
from benchmarks.rounds import clocked
from storage.database.database import Database
from storage.database.tables import budget_account, entry, query
from storage.errors import Busy
from storage.ledger.ledger import Ledger, Reservation

#: The account that runs out first, by how many there are for a query to fit.
BINDING = {1: AccountRank.ANALYST_ON_DATASET, 2: AccountRank.DATASET, 3: AccountRank.ANALYST}


@dataclass(frozen=True)
class Found:
    """What three books say: the clients, the queries, and each account that was charged."""

    room: int
    outcomes: Counter[str]
    queries: int
    binding: int

    def off(self) -> int:
        """How far the book is that is furthest from the room: 0 when every book says that all of
        it was granted, and nothing more."""
        books = self.outcomes["granted"], self.queries, self.binding
        return max(abs(book - self.room) for book in books)


def contend(
    url: str,
    folder: Path,
    pool: Executor,
    *,
    bound: int,
    clients: int,
    requests: int,
    processes: int,
) -> Found:
    """Have each of the processes and clients ask so often, for queries of ``bound`` accounts."""
    room = clients * requests * processes // 4
    with accounts.opened(url, folder) as (database, _):
        pairs, binding = _pairs(database, bound, PrivacyLoss(CHARGE.epsilon_nano * room))
        asked = [
            pool.submit(_clients, url, str(folder), pairs, clients, requests)
            for _ in range(processes)
        ]
        outcomes = sum((one.result() for one in asked), Counter[str]())
        return Found(room, outcomes, _queries(database, pairs), _charged(database, binding))


def _pairs(database: Database, bound: int, limit: PrivacyLoss) -> tuple[list[Pair], int]:
    """The pairs that are asked, and the id of the account that binds them all."""
    analyst, dataset = accounts.new_user(database), accounts.new_dataset(database)
    pairs = [(analyst, dataset)]
    if bound == 2:
        pairs.append((accounts.new_user(database), dataset))
    if bound == 3:
        pairs.append((analyst, accounts.new_dataset(database)))
    binding = BINDING[bound]
    wanted: set[tuple[AccountRank, int, int]] = set()
    for user, of in pairs:
        wanted |= {(AccountRank.ANALYST_ON_DATASET, of, user), (AccountRank.DATASET, of, 0)}
        if bound == 3:
            wanted.add((AccountRank.ANALYST, 0, user))
    id = 0
    for rank, of, user in sorted(wanted):
        opened = accounts.new_account(database, rank, of, user, limit if rank == binding else AMPLE)
        id = opened if rank == binding else id
    return pairs, id


def _clients(url: str, folder: str, pairs: list[Pair], clients: int, requests: int) -> Counter[str]:
    with accounts.opened(url, Path(folder)) as (_, ledger):
        return asyncio.run(_all(ledger, pairs, clients, requests))


async def _all(ledger: Ledger, pairs: Sequence[Pair], clients: int, requests: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    turns = cycle(pairs)
    await asyncio.gather(*(_one(ledger, turns, requests, outcomes) for _ in range(clients)))
    return outcomes


async def _one(
    ledger: Ledger, turns: Iterator[Pair], requests: int, outcomes: Counter[str]
) -> None:
    for _ in range(requests):
        asked = request(next(turns))
        while True:
            try:
                held = await ledger.reserve(asked)
            except Busy:
                continue  # nothing was written: a client comes again
            except (BudgetExhausted, CapExhausted):
                outcomes["refused"] += 1
                break
            assert isinstance(held, Reservation)
            while True:
                with suppress(Busy):
                    assert await ledger.settle(held, status=201, body=b"x", release_us=0)
                    break
            outcomes["granted"] += 1
            break


def _queries(database: Database, pairs: Sequence[Pair]) -> int:
    """Queries that are there, which must be those with a charge."""
    datasets = {dataset for _, dataset in pairs}
    charged = select(func.count(func.distinct(entry.c.query_id))).where(
        entry.c.kind == 1,
        entry.c.query_id.in_(select(query.c.id).where(query.c.dataset_id.in_(datasets))),
    )
    stored = select(func.count()).select_from(query).where(query.c.dataset_id.in_(datasets))
    with database.read() as connection:
        count = connection.execute(stored).scalar_one()
        assert connection.execute(charged).scalar_one() == count, "charged and stored together"
    return int(count)


def _charged(database: Database, account: int) -> int:
    wanted = select(budget_account.c.charged_eps_n).where(budget_account.c.id == account)
    with database.read() as connection:
        return int(connection.execute(wanted).scalar_one()) // CHARGE.epsilon_nano


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Processes that know nothing of each other."""
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        yield pool


def run(setting: Setting, kind: str) -> Result:
    result = Result()
    clients, requests, count = (8, 100, 2) if setting.quick else (64, 10_000, 3)
    with folder() as within, databases(kind, within) as new_database, processes(count) as pool:
        for bound in BINDING:
            seconds, found = clocked(
                lambda bound=bound: contend(  # type: ignore[misc]
                    new_database(f"bound{bound}"), within, pool,
                    bound=bound, clients=clients, requests=requests, processes=count,
                )
            )  # fmt: skip
            result.table(
                f"{bound} accounts, {seconds:.1f} s", ["room", "granted", "queries", "charged"],
                [[found.room, found.outcomes["granted"], found.queries, found.binding]],
            )  # fmt: skip
            result.measure(f"{bound} accounts: off the room", found.off())
    return result


BENCHES = tuple(
    Bench(
        f"ledger_exactness.{kind}",
        f"Is exactly the room there is granted to many clients on {kind}?",
        partial(run, kind=kind),
        900.0,
        (),
        (Bar("*: off the room", most=0),),
    )
    for kind in KINDS
)
