"""Ledgers of any size with every kind of entry and every way a query can end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Connection, update

from storage.database import tables
from storage.database.expressions import read_now
from storage.journal.layouts import EntryKind
from storage.ledger.entries import Cause, change_account
from storage.ledger.freezing import OPERATOR, record_freeze
from storage.ledger.ledger import Reservation
from storage.people.users import User
from tests.support.world import World, loss, request

#: The number of requests that are written concurrently, so that they share commits.
AT_ONCE = 64


def set_frozen(connection: Connection, account_id: int, frozen: bool) -> bool:
    """Stop or admit new charges; False when that is how the account stands already."""
    kind = EntryKind.FREEZE if frozen else EntryKind.UNFREEZE
    cause = Cause(kind, OPERATOR, read_now(connection))
    if change_account(connection, account_id, cause) is None:
        return False
    action = "ledger.freeze" if frozen else "ledger.accept_rollback"
    record_freeze(connection, action, [account_id], {})
    return True


def busy_ledger(world: World, queries: int) -> list[User]:
    """Write about two entries per query for three analysts on two datasets; return the analysts."""
    analysts = [world.analyst() for _ in range(3)]
    datasets = [world.dataset(loss(10**6, "0.9")) for _ in range(2)]
    for dataset in datasets:
        for analyst in analysts:
            world.grant(dataset, analyst, loss(10**5, "0.2"))

    def ask(number: int) -> None:
        analyst, dataset = analysts[number % 3], datasets[number // 3 % 2]
        query = request(dataset, analyst, loss("0.1", "0.000001"), key=f"key {number}")
        reservation = world.ledger.reserve(query)
        assert isinstance(reservation, Reservation)
        if number % 10 == 3:
            assert world.ledger.release(reservation)
        elif number % 10 != 7:
            status, body = (500, b"failed") if number % 10 == 5 else (201, b"answer %d" % number)
            assert world.ledger.settle(reservation, status=status, body=body, release_us=number)

    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(ask, range(queries)))
    _take_over(world, analysts[1], datasets[0])
    world.grant(datasets[0], analysts[0], loss(10**5 + 1, "0.3"))
    account = world.ledger.account(datasets[1].id, analysts[2].id)
    assert account is not None
    for frozen in (True, False):
        world.database.write(
            lambda connection, frozen=frozen: set_frozen(connection, account.id, frozen)
        )
    return analysts


def _take_over(world: World, analyst: User, dataset: object) -> None:
    """Write one query that was answered by its second attempt."""
    query = request(dataset, analyst, key="lapsed")  # type: ignore[arg-type]
    first = world.ledger.reserve(query)
    assert isinstance(first, Reservation)
    lapsed = update(tables.query).where(tables.query.c.id == first.query_id).values(lease_until=0)
    world.database.write(lambda connection: connection.execute(lapsed))
    second = world.ledger.reserve(query)
    assert isinstance(second, Reservation)
    assert second.attempt == 2
    assert world.ledger.settle(second, status=201, body=b"late", release_us=1)
