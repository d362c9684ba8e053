"""The pages of the dashboard over a large ledger: the time until each is there, and its length.

1,000 analysts hold accounts on 200 datasets, and a million entries stand in the ledger. Rows of
accounts, queries and entries are inserted below the functions that charge, so this ledger is not
valid. Pages read rows and verify nothing, so that does not change what is measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from random import Random
from statistics import median
from typing import Any
from uuid import UUID

import httpx
from sqlalchemy import Connection, Table, insert, select, update

from accounting.account import AccountRank, Limit
from accounting.privacy_loss import NANO, PrivacyLoss
from app.demo.service import ServiceProcess
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.ledger.databases import folder
from benchmarks.result import Result
from mechanisms.model.domains import GraphDomain, NeighbouringRelation
from storage.catalogue.datasets import Datasets
from storage.database.database import Database
from storage.database.tables import budget_account, dataset, entry, query
from storage.journal.layouts import EntryKind
from storage.people.users import Users
from storage.records.data_folder import Files

DAY_US = 86_400 * 1_000_000
#: Each charge writes two entries, one in the analyst's account and one in the account of the
#: dataset's cap.
ENTRIES_PER_QUERY = 2
DIGEST = sha256(b"an entry").digest()
QUESTION = json.dumps(
    {"dataset": "data-1", "epsilon": "0.001", "query": {"kind": "statistic", "statistic": "edges"}}
).encode()
ANSWER = json.dumps({"status": "answered", "answer": {"value": 1.0}}).encode()
#: The timed pages of each role. The first analyst and the first dataset have the most rows. The
#: filters by a kind of entry, and by the dataset ``nothing``, match no row.
PAGES = {
    "admin": ("/ui/users", "/ui/users?q=analyst-99", "/ui/users/analyst-1", "/ui/health"),
    "owner": (
        "/ui/datasets",
        "/ui/datasets?q=data-19",
        "/ui/datasets/data-1",
        "/ui/datasets/data-1/requests",
        "/ui/grants",
        "/ui/grants/data-1",
        "/ui/grants/data-1?q=analyst-99",
        "/ui/queries",
        "/ui/ledger",
        "/ui/ledger?kind=unfreeze",
        "/ui/ledger?dataset=data-1&kind=freeze",
        "/ui/queries?dataset=nothing",
        "/ui/register",
        "/ui/notices",
    ),
    "analyst": (
        "/ui/budgets",
        "/ui/budgets/data-1",
        "/ui/ask",
        "/ui/ask?dataset=data-2",
        "/ui/datasets",
        "/ui/queries",
        "/ui/ledger",
        "/ui/ledger?dataset=data-1",
        "/ui/ledger?kind=freeze",
        "/ui/keys",
        "/ui/notices",
        "/ui/help",
        "/ui/help?q=privacy",
    ),
    "auditor": (
        "/ui/verification",
        "/ui/refusals",
        "/ui/audit",
        "/ui/datasets",
        "/ui/grants",
        "/ui/grants/data-1",
        "/ui/queries",
        "/ui/queries?dataset=nothing",
        "/ui/ledger",
        "/ui/ledger?kind=freeze",
        "/ui/ledger?dataset=nothing",
        "/ui/ledger?analyst=analyst-1&kind=release",
    ),
}


def pages(result: Result, setting: Setting) -> None:
    analysts, datasets = setting.size(1_000, 20), setting.size(200, 5)
    entries = setting.size(1_000_000, 2_000)
    with folder() as within:
        service = ServiceProcess(within / "data")
        service.start().wait_ready()
        service.stop()
        keys = fill(within / "data", analysts, datasets, entries)
        with service as served:
            rows = [
                (role, path, *measured(served.url, keys[role], path, setting.times(20)))
                for role, paths in PAGES.items()
                for path in paths
            ]
    result.table("pages", ["role", "page", "milliseconds", "kB"], [list(row) for row in rows])
    result.measure("slowest page", max(row[2] for row in rows), "ms")
    result.measure("longest page", max(row[3] for row in rows), "kB")


def measured(url: str, key: str, path: str, times: int) -> tuple[float, float]:
    """The median milliseconds until a warm page is there, and its kilobytes."""
    with httpx.Client(base_url=url, timeout=60) as browser:
        sent = browser.post("/ui/sign-in", data={"key": key}, headers={"Origin": url})
        assert sent.status_code == 303, sent.text
        seconds, length = [], 0
        for _ in range(times + 2):
            began = time.perf_counter()
            reply = browser.get(path)
            seconds.append(time.perf_counter() - began)
            assert reply.status_code == 200, (path, reply.status_code)
            length = len(reply.content)
    return median(seconds[2:]) * 1e3, length / 1e3


def fill(data: Path, analysts: int, datasets: int, entries: int) -> dict[str, str]:
    """Fill a stopped service; returns a key of one user per role."""
    database = Database.open(f"sqlite:///{data}/privypurse.db", data)
    try:
        return _fill(database, data, analysts, datasets, entries)
    finally:
        database.close()


def _fill(
    database: Database, data: Path, analysts: int, datasets: int, entries: int
) -> dict[str, str]:
    users = Users(database)
    root = users.find("admin") or users.page(1, None).items[0]
    keys = {
        role: users.create(f"{role}-0", [role], actor=root)[1].key
        for role in ("admin", "owner", "auditor")
    }
    owner = users.find("owner-0")
    assert owner is not None
    people = []
    for number in range(1, analysts + 1):
        user, issued = users.create(f"analyst-{number}", ["analyst"], actor=root)
        people.append(user.id)
        keys.setdefault("analyst", issued.key)
    catalogue = Datasets(database, Files(data))
    limit = Limit.of(PrivacyLoss.parse("1000000"))
    ids = [
        catalogue.register(
            f"data-{number}",
            owner=owner,
            description={"kind": "graph", "neighbouring": "edge", "records_per_person": 1},
            domain=GraphDomain(1000, 100),
            neighbouring=NeighbouringRelation.EDGE,
            records_per_person=1,
            cap=limit,
        ).id
        for number in range(1, datasets + 1)
    ]
    now_us = database.now_us()
    database.write(lambda c: c.execute(update(dataset).values(version=1, versions=1)))
    pairs = [(one, other) for one in people for other in ids]
    _insert(database, budget_account, _accounts(pairs))
    with database.read() as connection:
        c = budget_account.c
        accounts = {
            (row.analyst_id, row.dataset_id): row.id
            for row in connection.execute(select(c.id, c.analyst_id, c.dataset_id))
        }
    queries = max(0, entries - len(pairs)) // ENTRIES_PER_QUERY
    chosen = list(_queries(pairs, queries, now_us))
    _insert(database, query, chosen)
    _insert(database, entry, _entries(chosen, pairs, accounts, now_us))
    return keys


def _accounts(pairs: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for number, (analyst, of) in enumerate(pairs):
        yield {
            "rank": int(AccountRank.ANALYST_ON_DATASET),
            "dataset_id": of,
            "analyst_id": analyst,
            "lim_eps_n": 100 * NANO,
            "lim_delta_a": 0,
            "charged_eps_n": number % 100 * NANO,
            "seq": 1,
            "head": DIGEST,
        }


def _queries(pairs: list[tuple[int, int]], count: int, now_us: int) -> Iterator[dict[str, Any]]:
    random = Random(1)
    for number in range(count):
        # A tenth of all queries are of one analyst on one dataset, so their pages have the most
        # rows.
        analyst, of = pairs[0] if number % 10 == 0 else random.choice(pairs)
        at_us = now_us - 60 * DAY_US + number * 60 * DAY_US // count
        yield {
            "id": UUID(int=number + 1),
            "analyst_id": analyst,
            "dataset_id": of,
            "dataset_version": 1,
            "idem_key": str(number),
            "body_hash": DIGEST,
            "request": QUESTION,
            "eps_n": NANO // 1000,
            "delta_a": 0,
            "state": 1,
            "attempt_us": at_us,
            "lease_until": at_us,
            "answer": ANSWER,
            "answer_hash": DIGEST,
            "answer_status": 201,
            "created_us": at_us,
            "settled_us": at_us,
            "release_us": at_us,
        }


def _entries(
    queries: list[dict[str, Any]],
    pairs: list[tuple[int, int]],
    accounts: dict[tuple[int, int], int],
    now_us: int,
) -> Iterator[dict[str, Any]]:
    last = dict.fromkeys(accounts.values(), 1)
    common = {"d_delta_a": 0, "digest": DIGEST, "head": DIGEST}
    for pair in pairs:
        genesis = {"kind": int(EntryKind.GENESIS), "query_id": None, "d_eps_n": 100 * NANO}
        at = {"account_id": accounts[pair], "seq": 1, "actor": 1, "at_us": now_us - 61 * DAY_US}
        yield {**common, **genesis, **at}
    for one in queries:
        for key in ((one["analyst_id"], one["dataset_id"]), (0, one["dataset_id"])):
            account = accounts[key]
            last[account] += 1
            yield {
                **common,
                "account_id": account,
                "seq": last[account],
                "kind": int(EntryKind.CHARGE),
                "query_id": one["id"],
                "actor": one["analyst_id"],
                "d_eps_n": one["eps_n"],
                "at_us": one["created_us"],
            }


def _insert(database: Database, table: Table, rows: Any) -> None:
    remaining = iter(rows)
    while batch := list(islice(remaining, 20_000)):
        database.write(partial(Connection.execute, statement=insert(table), parameters=batch))


BENCHES = (
    Bench("dashboard_pages", "How long does a page take over a million entries?", pages, 120.0,
          rivals=(), bars=(Bar("slowest page", most=300.0), Bar("longest page", most=200.0))),
)  # fmt: skip
