"""Exactly the room there is: many clients of several processes against a quarter of their requests.

With one account the analyst's allowance binds, with two the dataset's cap binds two analysts, with
three an analyst's overall limit binds on two datasets. Every request is a new query; what is
granted is settled. Not one more or less may be granted than there is room for.

Where accounts count in ρ, a quarter of the room fits by ε and all of it by ρ. Of two queries one
adds Gaussian noise, unless the overall limit binds: it counts in ε alone.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, product
from multiprocessing import get_context
from pathlib import Path
from typing import Self

from sqlalchemy import Connection, func, select

from accounting.account import AccountRank, Limit
from accounting.errors import BudgetExhausted, CapExhausted
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from benchmarks.bench import Bar, Setting, for_each
from benchmarks.ledger import accounts
from benchmarks.ledger.accounts import AMPLE, CHARGE, NEEDED, Pair, request
from benchmarks.ledger.databases import KINDS, databases, folder
from benchmarks.result import Result
from benchmarks.rounds import clocked
from storage.database.tables import entry, query
from storage.errors import Busy
from storage.ledger.accounts import find_account
from storage.ledger.ledger import Ledger, Reservation

#: One request: the ids of the analyst and the dataset, and the privacy loss to be charged.
Turn = tuple[Pair, PrivacyLoss]
#: The account whose limit is reached first, by the number of accounts under test. The limits of
#: all other accounts are ample.
BINDING = {1: AccountRank.ANALYST_ON_DATASET, 2: AccountRank.DATASET, 3: AccountRank.ANALYST}


@dataclass(frozen=True)
class Prices:
    """What queries are charged in turn, the limit with room for so many, and ample limits."""

    charges: Sequence[PrivacyLoss]
    binding: Limit
    ample: Limit

    @classmethod
    def of(cls, room: int, bound: int, in_rho: bool) -> Self:
        if not in_rho:
            return cls((CHARGE,), Limit.of(CHARGE * room), Limit.of(AMPLE))
        # Both limits allow Gaussian noise. Each promises (ε, δ_c) in total with δ_c = 10⁻⁶, one for
        # ε = 1 and one for ε = 10.
        small, ample = (
            Limit.of(PrivacyLoss(epsilon * NANO), ATTO // 10**6, gaussian=True)
            for epsilon in (1, 10)
        )
        rho = small.rho_femto // room
        finite = PrivacyLoss(4 * small.epsilon_nano // room, 0, rho)
        if bound == 3:
            return cls((finite,), Limit.of(PrivacyLoss(finite.epsilon_nano * room)), ample)
        return cls((finite, PrivacyLoss(0, 0, rho, 1)), small, ample)

    def times(self, charged: PrivacyLoss) -> int:
        """How many charges an account sums up."""
        measure = 2 if self.binding.has_rho else 0
        return charged.amounts[measure] // self.charges[0].amounts[measure]


@dataclass(frozen=True)
class Books:
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
    in_rho: bool = False,
) -> Books:
    """Have each of the processes and clients ask so often, for queries of ``bound`` accounts."""
    room = clients * requests * processes // 4
    prices = Prices.of(room, bound, in_rho)
    limits = dict.fromkeys(NEEDED, prices.ample) | {BINDING[bound]: prices.binding}
    users, datasets = 1 + (bound == 2), 1 + (bound == 3)
    with accounts.opened(url, folder) as (database, _):
        pairs = database.write(lambda c: accounts.new_pairs(c, limits, users, datasets))
        jobs = [
            pool.submit(_clients, url, str(folder), pairs, prices.charges, clients, requests)
            for _ in range(processes)
        ]
        outcomes = sum((job.result() for job in jobs), Counter[str]())
        with database.read() as connection:
            queries = _queries(connection, pairs)
            account = find_account(connection, accounts.account_key(BINDING[bound], pairs[0]))
    assert account is not None
    return Books(room, outcomes, queries, prices.times(account.account.charged))


def _clients(
    url: str,
    folder: str,
    pairs: list[Pair],
    charges: Sequence[PrivacyLoss],
    clients: int,
    requests: int,
) -> Counter[str]:
    turns = cycle((pair, charge) for charge in charges for pair in pairs)
    with accounts.opened(url, Path(folder)) as (_, ledger):
        return asyncio.run(_all(ledger, turns, clients, requests))


async def _all(ledger: Ledger, turns: Iterator[Turn], clients: int, requests: int) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    await asyncio.gather(*(_one(ledger, turns, requests, outcomes) for _ in range(clients)))
    return outcomes


async def _one(
    ledger: Ledger, turns: Iterator[Turn], requests: int, outcomes: Counter[str]
) -> None:
    for _ in range(requests):
        query = request(*next(turns))
        while True:
            try:
                reservation = await ledger.reserve(query)
            except Busy:
                continue  # The database was busy and wrote nothing, so the client retries.
            except (BudgetExhausted, CapExhausted):
                outcomes["refused"] += 1
                break
            assert isinstance(reservation, Reservation)
            while True:
                with suppress(Busy):
                    assert await ledger.settle(reservation, status=201, body=b"x", release_us=0)
                    break
            outcomes["granted"] += 1
            break


def _queries(connection: Connection, pairs: Sequence[Pair]) -> int:
    """Queries that are there, which must be those with a charge."""
    of_pairs = query.c.dataset_id.in_({dataset for _, dataset in pairs})
    charged = select(func.count(func.distinct(entry.c.query_id))).where(
        entry.c.kind == 1, entry.c.query_id.in_(select(query.c.id).where(of_pairs))
    )
    stored = select(func.count()).select_from(query).where(of_pairs)
    count = connection.execute(stored).scalar_one()
    assert connection.execute(charged).scalar_one() == count, "charged and stored together"
    return int(count)


def processes(count: int) -> ProcessPoolExecutor:
    """Processes that know nothing of each other."""
    return ProcessPoolExecutor(count, mp_context=get_context("spawn"))


def run(result: Result, setting: Setting, name: str) -> None:
    clients, requests, count = (8, 100, 2) if setting.quick else (64, 10_000, 3)
    with folder() as within, databases(name, within) as new_database, processes(count) as pool:
        for bound, in_rho in product(BINDING, (False, True)):
            seconds, books = clocked(
                lambda bound=bound, in_rho=in_rho: contend(  # type: ignore[misc]
                    new_database(f"bound{bound}{in_rho}".lower()), within, pool, bound=bound,
                    clients=clients, requests=requests, processes=count, in_rho=in_rho,
                )
            )  # fmt: skip
            what = f"{bound} accounts, {'ε or ρ' if in_rho else 'ε'}"
            result.table(
                f"{what}, {seconds:.1f} s", ["room", "granted", "queries", "charged"],
                [[books.room, books.outcomes["granted"], books.queries, books.binding]],
            )  # fmt: skip
            result.measure(f"{what}: off the room", books.off())


BENCHES = for_each(
    "ledger_exactness", "Is exactly the room there is granted to many clients on {}?", run, "",
    dict.fromkeys(KINDS, 1800.0), bars=(Bar("*: off the room", most=0),),
)  # fmt: skip
