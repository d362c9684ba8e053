"""Pages of entries hold the same lines whichever way they are read, and few rows are read."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import insert

from storage.database.tables import entry
from storage.journal.layouts import EntryKind
from storage.queries import entry_pages
from storage.queries.entry_pages import EntryRow, page_of_entries
from tests.support.effort import instructions
from tests.support.world import World

DIGEST = sha256(b"an entry").digest()


def add_entries(world: World, account_id: int, moments: list[int], first_seq: int = 2) -> None:
    """Adds charges below the ledger. Pages verify nothing, so they read them as any others."""
    rows = [
        {
            **{"account_id": account_id, "seq": seq, "kind": int(EntryKind.CHARGE), "actor": 1},
            **{"d_eps_n": 1, "d_delta_a": 0, "at_us": at_us, "digest": DIGEST, "head": DIGEST},
        }
        for seq, at_us in enumerate(moments, first_seq)
    ]
    world.database.write(lambda connection: connection.execute(insert(entry), rows))


def every_entry(world: World, limit: int, **scope: Any) -> list[EntryRow]:
    """The entries of all pages, each of which is full but the last."""
    rows: list[EntryRow] = []
    cursor = None
    while True:
        page = page_of_entries(world.database, **scope, limit=limit, cursor=cursor)
        assert len(page.items) == limit or page.next is None
        rows += page.items
        cursor = page.next
        if cursor is None:
            return rows


def test_a_window_neither_repeats_nor_skips_an_entry(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [world.ready() for _ in range(2)]
    soon = world.now() + 10**9
    for number, (dataset, analyst) in enumerate(pairs):
        account = world.ledger.account(dataset.id, analyst.id)
        assert account is not None
        # A page first reads the newest entries alone (a window). Entries of one moment lie on both
        # sides of a window's end, and in several accounts.
        add_entries(world, account.id, [soon + (i * i + number) % 3 for i in range(7)])
    everything = every_entry(world, 100)
    owner, (dataset, analyst) = world.owner.id, pairs[0]
    of_dataset = [one for one in everything if one.dataset == dataset.name]
    of_analyst = [one for one in everything if one.analyst == analyst.name]
    assert 7 < len(of_analyst) < len(of_dataset) < len(everything)
    scopes: list[tuple[dict[str, Any], list[EntryRow]]] = [
        ({"owner_id": owner}, everything),
        ({"owner_id": analyst.id}, []),
        ({"analyst_id": analyst.id}, of_analyst),
        ({"owner_id": owner, "datasets": {dataset.id}}, of_dataset),
        ({"dataset_name": dataset.name, "kind": "charge"}, of_dataset[:7]),
        ({"analyst_name": analyst.name}, of_analyst),
    ]
    for window in (1, 4, 100):
        monkeypatch.setattr(entry_pages, "WINDOW", window)
        for scope, expected in scopes:
            assert every_entry(world, 2, **scope) == expected


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_page_reads_a_window_and_not_the_ledger(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, analyst = world.ready()
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    soon = world.now() + 10**9
    monkeypatch.setattr(entry_pages, "WINDOW", 30)

    def pages() -> None:
        for scope in (
            {"owner_id": world.owner.id},
            {"analyst_id": analyst.id},
            {"owner_id": world.owner.id, "analyst_id": analyst.id},
            {"dataset_name": dataset.name},
            {"analyst_name": analyst.name},
            {"datasets": {dataset.id}},
        ):
            first = page_of_entries(world.database, **scope, limit=5)
            assert page_of_entries(world.database, **scope, limit=5, cursor=first.next).next

    add_entries(world, account.id, [soon + number for number in range(60)])
    before = instructions(world.database, pages)
    add_entries(world, account.id, [soon + number for number in range(60, 1500)], 62)
    assert instructions(world.database, pages) <= 1.2 * before


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_page_of_a_rare_kind_reads_no_charges(world: World) -> None:
    dataset, analyst = world.ready()
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None

    def pages() -> None:
        for name in ("release", "limit_change", "freeze", "unfreeze", "genesis"):
            page_of_entries(world.database, kind=name)

    soon = world.now() + 10**9
    before = instructions(world.database, pages)
    add_entries(world, account.id, [soon + number for number in range(300)])
    assert instructions(world.database, pages) <= 1.2 * before
    assert {one.kind for one in every_entry(world, 2, kind="genesis")} == {"genesis"}
