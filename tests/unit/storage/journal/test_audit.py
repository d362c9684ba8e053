"""The trail as it is read: newest first, by name, and without what only records could tell."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import insert, update

from storage.database import tables
from storage.journal.audit import OPERATOR_NAME, page_of_lines
from storage.ledger.freezing import freeze
from tests.support.effort import instructions
from tests.support.tampering import tampering
from tests.support.world import World, loss


def test_lines_are_read_newest_first_page_by_page(world: World) -> None:
    dataset, analyst = world.ready(loss(2))
    world.users.issue_key(analyst.name, actor=world.admin)
    world.versions.withdraw(dataset.name, actor=world.owner)
    at_us = world.now()
    account = world.ledger.account(dataset.id, analyst.id)
    assert account is not None
    world.database.write(lambda connection: freeze(connection, [account.id], at_us))
    lines, cursor = [], None
    while True:
        page = page_of_lines(world.database, 2, cursor)
        lines += page.items
        cursor = page.next
        if cursor is None:
            break
    assert [(line.actor, line.action) for line in lines] == [
        (OPERATOR_NAME, "ledger.freeze"),
        ("olga", "records.withdraw"),
        ("admin", "key.issue"),
        ("olga", "budget.set"),
        ("admin", "user.create"),
        ("olga", "records.upload"),
        ("olga", "dataset.register"),
        ("admin", "user.create"),
        ("admin", "user.bootstrap"),
    ]
    assert [line.at_us for line in lines] == sorted((line.at_us for line in lines), reverse=True)
    granted = lines[3]
    assert granted.subject == f"{dataset.name}/{analyst.name}"
    assert granted.detail == {"epsilon": "2", "delta": "0"}


def test_it_does_not_say_when_a_preparation_ended(world: World) -> None:
    """Between an upload and its publication lies a time that depends on the records."""
    world.dataset()
    actions = {line.action for line in page_of_lines(world.database, 100).items}
    assert "records.upload" in actions
    assert "records.publish" not in actions


@pytest.mark.parametrize("kind", ["sqlite"], indirect=True)
def test_a_page_reads_its_own_lines_alone(world: World) -> None:
    def pages() -> None:
        first = page_of_lines(world.database, 2)
        assert len(page_of_lines(world.database, 2, first.next).items) == 2

    issue = partial(world.users.issue_key, world.owner.name, actor=world.admin)
    for _ in range(6):
        issue()
    before = instructions(world.database, pages)
    for _ in range(60):
        issue()
    assert instructions(world.database, pages) <= 1.2 * before


def test_old_lines_follow_those_of_the_journal(world: World) -> None:
    """Also where both have one moment, at which a page ends."""
    newest = world.now() + 10**6
    with tampering(world.database.engine.url.render_as_string(hide_password=False)) as run:
        run(update(tables.journal).values(at_us=newest))
        for id in (1, 2):
            old = {"id": id, "at_us": newest, "actor_id": world.admin.id, "action": f"old {id}"}
            run(insert(tables.audit).values(old | {"subject": "s", "detail": "{}"}))
    actions, cursor = [], None
    while True:
        page = page_of_lines(world.database, 1, cursor)
        actions += [line.action for line in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert actions == ["user.create", "user.bootstrap", "old 2", "old 1"]
