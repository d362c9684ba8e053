"""Accounts, limits, entries and queries as they are shown."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import func, select, update

from accounting.account import AccountRank
from accounting.errors import BelowSpent
from storage.database import tables
from storage.database.tables import journal
from storage.errors import InvalidCursor, PreconditionFailed, StillRunning
from storage.journal.audit import page_of_lines
from storage.ledger.ledger import Reservation
from storage.queries.entry_pages import page_of_entries
from tests.support.world import World, allowance, check_invariants, contents, loss, request


def journal_facts(world: World) -> int:
    with world.database.read() as connection:
        return connection.execute(select(func.count()).select_from(journal)).scalar_one()


class TestLimits:
    def test_the_first_grant_opens_the_account(self, world: World) -> None:
        dataset, analyst = world.dataset(), world.analyst()
        assert world.ledger.account(dataset.id, analyst.id) is None
        row = world.ledger.grant(
            dataset.id, analyst.id, allowance("1.5", "0.1"), actor_id=world.owner.id
        )
        assert row == world.ledger.account(dataset.id, analyst.id)
        assert (row.analyst, row.dataset) == (analyst.name, dataset.name)
        assert (row.account.limit, row.account.charged) == (allowance("1.5", "0.1"), loss(0))
        genesis = page_of_entries(world.database, analyst_id=analyst.id).items
        assert [(e.kind, e.rank, e.amounts[:2], e.actor) for e in genesis] == [
            ("genesis", AccountRank.ANALYST_ON_DATASET, (1_500_000_000, 10**17), "olga")
        ]

    def test_every_change_is_an_entry(self, world: World) -> None:
        dataset, analyst = world.ready(loss(1))
        world.grant(dataset, analyst, loss(3, "0.5"))
        world.grant(dataset, analyst, loss(2, "0.5"))
        facts = journal_facts(world)
        # The limit stays the same, so no entry and no fact is written.
        world.grant(dataset, analyst, loss(2, "0.5"))
        assert journal_facts(world) == facts
        entries = page_of_entries(world.database, analyst_id=analyst.id).items
        assert [(e.kind, *e.amounts[:2]) for e in entries] == [
            ("limit_change", -(10**9), 0),
            ("limit_change", 2 * 10**9, 5 * 10**17),
            ("genesis", 10**9, 0),
        ]
        check_invariants(world.database)

    def test_a_limit_never_falls_below_what_is_charged(self, world: World) -> None:
        dataset, analyst = world.ready(loss(2, "0.2"))
        world.ledger.reserve(request(dataset, analyst, loss(1, "0.1")))
        before = contents(world.database)
        for limit in (loss("0.999999999", "0.1"), loss(1, "0.09"), loss(0)):
            with pytest.raises(BelowSpent) as refusal:
                world.grant(dataset, analyst, limit)
            assert refusal.value.spent == loss(1, "0.1")
        assert contents(world.database) == before
        world.grant(dataset, analyst, loss(1, "0.1"))
        account = world.ledger.account(dataset.id, analyst.id)
        assert account is not None
        assert account.account.remaining == loss(0)

    def test_if_match_stops_a_change_of_another_state(self, world: World) -> None:
        dataset, analyst = world.dataset(), world.analyst()

        def grant(limit: int, if_match: str | None) -> str:
            return world.ledger.grant(
                dataset.id, analyst.id, allowance(limit), actor_id=world.owner.id, if_match=if_match
            ).etag

        for absent in ("*", '"1-1"'):
            with pytest.raises(PreconditionFailed):
                grant(1, absent)
        assert world.ledger.account(dataset.id, analyst.id) is None
        first = grant(1, None)
        second = grant(2, first)
        assert first != second
        with pytest.raises(PreconditionFailed):
            grant(3, first)
        world.ledger.reserve(request(dataset, analyst))
        with pytest.raises(PreconditionFailed):
            grant(3, second)
        assert grant(3, "*") != second

    @pytest.mark.parametrize("limit", [(10**18 + 1, 0), (1, 10**18)])
    def test_limits_stay_inside_64_bits(self, world: World, limit: tuple[int, int]) -> None:
        from accounting.privacy_loss import PrivacyLoss

        dataset, analyst = world.dataset(), world.analyst()
        with pytest.raises(ValueError):
            world.grant(dataset, analyst, PrivacyLoss(*limit))
        world.grant(dataset, analyst, PrivacyLoss(10**18, 10**18 - 1))
        check_invariants(world.database)

    def test_accounts_are_listed_by_name(self, world: World) -> None:
        first, second = world.dataset(), world.dataset()
        analysts = [world.analyst() for _ in range(3)]
        for analyst in reversed(analysts):
            world.grant(first, analyst, loss(1))
        world.grant(second, analysts[0], loss(2))
        names = [row.analyst for row in world.ledger.accounts(dataset_id=first.id)]
        assert names == [analyst.name for analyst in analysts]
        own = world.ledger.accounts(analyst_id=analysts[0].id)
        assert [row.dataset for row in own] == [first.name, second.name]
        assert world.ledger.accounts(analyst_id=analysts[1].id)[0].account.limit == allowance(1)

    def test_grants_are_audited(self, world: World) -> None:
        dataset, analyst = world.ready(loss("0.5"))
        line = page_of_lines(world.database, 1).items[0]
        assert line.action == "budget.set"
        assert line.subject == f"{dataset.name}/{analyst.name}"
        assert line.detail == {"delta": "0", "epsilon": "0.5"}
        assert line.actor == world.owner.name


class TestEntries:
    def test_each_sees_their_own(self, world: World) -> None:
        first, ada = world.ready()
        second, bob = world.ready()
        world.ledger.reserve(request(first, ada))
        entries = partial(page_of_entries, world.database)
        assert [e.kind for e in entries(analyst_id=ada.id).items] == ["charge", "genesis"]
        assert [e.kind for e in entries(analyst_id=bob.id).items] == ["genesis"]
        assert len(entries(owner_id=world.owner.id).items) == 6
        assert entries(owner_id=ada.id).items == []
        assert len(entries(dataset_name=second.name).items) == 2
        assert entries(analyst_id=ada.id, dataset_name=second.name).items == []
        # A caller who is both analyst and owner sees the entries of both roles.
        assert len(entries(analyst_id=ada.id, owner_id=world.owner.id).items) == 6

    def test_pages_repeat_and_skip_nothing(self, world: World) -> None:
        dataset, analyst = world.ready()
        for _ in range(5):
            world.ledger.reserve(request(dataset, analyst))
        everything = page_of_entries(world.database, limit=100).items
        seen, cursor = [], None
        while True:
            page = page_of_entries(world.database, limit=3, cursor=cursor)
            seen += page.items
            # Entries that are written after the first page was read must not appear on later pages.
            world.ledger.reserve(request(dataset, analyst, loss("0.01")))
            cursor = page.next
            if cursor is None:
                break
        assert seen == everything
        assert [e.at_us for e in seen] == sorted((e.at_us for e in seen), reverse=True)

    def test_cursors_of_other_lists_are_refused(self, world: World) -> None:
        cursor = world.users.page(1).next
        with pytest.raises(InvalidCursor):
            page_of_entries(world.database, cursor=cursor)
        with pytest.raises(InvalidCursor):
            world.queries.page(cursor=cursor)


class TestQueries:
    def test_a_query_is_shown_as_it_stands(self, world: World) -> None:
        dataset, analyst = world.ready(loss(1, "0.1"))
        reservation = world.ledger.reserve(request(dataset, analyst, loss("0.1", "0.01")))
        assert isinstance(reservation, Reservation)
        row = world.queries.find(reservation.query_id)
        assert row is not None
        assert (row.id, row.analyst, row.dataset, row.version, row.owner_id) == (
            reservation.query_id,
            analyst.name,
            dataset.name,
            1,
            world.owner.id,
        )
        assert (row.request, row.charge) == ({"kind": "top_k"}, loss("0.1", "0.01"))
        assert (row.status, row.created_us) == ("running", reservation.reserved_us)
        release_us = world.now()
        world.ledger.settle(reservation, status=201, body=b"answer", release_us=release_us)
        row = world.queries.find(reservation.query_id)
        assert row is not None
        assert (row.status, row.release_us) == ("answered", release_us)
        assert world.queries.reply(reservation.query_id) == (201, b"answer")
        assert world.queries.find(uuid4()) is None

    def test_a_query_is_short_by_the_bytes_of_its_texts(self, world: World) -> None:
        dataset, analyst = world.ready()
        query = request(dataset, analyst)
        reservation = world.ledger.reserve(query)
        assert isinstance(reservation, Reservation)
        id, length = reservation.query_id, len(query.request)
        with pytest.raises(StillRunning):
            world.queries.reply(id)
        assert world.queries.bytes_of_page(analyst.id, 1, None) == length
        world.ledger.settle(reservation, status=201, body=b"answer", release_us=world.now())
        length += len(b"answer")
        assert world.queries.bytes_of_page(analyst.id, 1, None) == length
        row = world.queries.find_short(id, analyst.id, length)
        assert row is not None
        assert row.id == id
        assert world.queries.find_short(id, analyst.id, length - 1) is None
        assert world.queries.find_short(id, world.analyst().id, length) is None

        other = world.ledger.reserve(replace(query, query_id=uuid4(), key=None))
        assert isinstance(other, Reservation)
        first = world.queries.page(analyst_id=analyst.id, limit=1)
        # A page of one also reads the query that follows, to know whether there is one.
        for limit in (1, 2):
            both = world.queries.bytes_of_page(analyst.id, limit, None)
            assert both == length + len(query.request)
        assert world.queries.bytes_of_page(analyst.id, 1, first.next) == length

    def test_lists_are_scoped_and_paged(self, world: World) -> None:
        dataset, ada = world.ready()
        bob = world.analyst()
        world.grant(dataset, bob, loss(1))
        ids = []
        for analyst in (ada, bob, ada, ada):
            reservation = world.ledger.reserve(request(dataset, analyst))
            assert isinstance(reservation, Reservation)
            world.ledger.settle(reservation, status=500, body=b"x", release_us=0)
            ids.append(reservation.query_id)
        mine = world.queries.page(analyst_id=ada.id, limit=2)
        assert [row.id for row in mine.items] == [ids[3], ids[2]]
        assert {row.status for row in mine.items} == {"failed"}
        rest = world.queries.page(analyst_id=ada.id, limit=2, cursor=mine.next)
        assert ([row.id for row in rest.items], rest.next) == ([ids[0]], None)
        assert len(world.queries.page(owner_id=world.owner.id).items) == 4
        assert len(world.queries.page().items) == 4
        assert world.queries.page(dataset="another").items == []
        assert len(world.queries.page(dataset=dataset.name).items) == 4

    @pytest.mark.parametrize("moments", [[5] * 6, [1, 2, 2, 2, 3, 3]])
    def test_pages_over_datasets_lose_no_query_of_one_moment(
        self, world: World, moments: list[int]
    ) -> None:
        ids, pairs = [], [world.ready(), world.ready()]
        for number, moment in enumerate(moments):
            dataset, ada = pairs[number // 3]
            reservation = world.ledger.reserve(request(dataset, ada))
            assert isinstance(reservation, Reservation)
            ids.append((moment, reservation.query_id))
            at = update(tables.query).where(tables.query.c.id == reservation.query_id)
            world.database.write(lambda c, at=at, us=moment: c.execute(at.values(created_us=us)))
        everything = [id for _, id in sorted(ids, reverse=True)]
        of_one = [id for _, id in sorted(ids[:3], reverse=True)]
        expected: list[tuple[dict[str, Any], list[UUID]]] = [
            ({}, everything),
            ({"owner_id": world.owner.id}, everything),
            ({"analyst_id": pairs[0][1].id}, of_one),
        ]
        for whose, all_ids in expected:
            for limit in (1, 2, 4):
                listed, cursor = [], None
                while True:
                    page = world.queries.page(**whose, limit=limit, cursor=cursor)
                    listed += [row.id for row in page.items]
                    cursor = page.next
                    if cursor is None:
                        break
                assert listed == all_ids

    def test_both_statements_for_queries_of_one_analyst_read_the_same(self, world: World) -> None:
        dataset, ada = world.ready()
        for status in (201, 500, None, 201):
            reservation = world.ledger.reserve(request(dataset, ada))
            assert isinstance(reservation, Reservation)
            if status is not None:
                world.ledger.settle(reservation, status=status, body=b"x", release_us=1)
        # Without a filter, the queries of one analyst are read by a statement that is compiled once
        # and follows an index. A filter by dataset needs another statement, which must return the
        # same rows.
        own = world.queries.page(analyst_id=ada.id, limit=3)
        of_dataset = world.queries.page(analyst_id=ada.id, dataset=dataset.name, limit=3)
        assert own.next == of_dataset.next is not None
        assert [row.status for row in own.items] == ["answered", "running", "failed"]
        now = own.items[0].now_us
        assert [replace(row, now_us=now) for row in of_dataset.items] == [
            replace(row, now_us=now) for row in own.items
        ]
