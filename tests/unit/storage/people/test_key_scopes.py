"""Restricted keys: until when they open anything, and the rights that they have."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import update

from storage.database.tables import api_key
from storage.people.key_scopes import WHOLE, KeyScope
from storage.people.keys import Restrictions
from storage.people.sessions import Sessions
from tests.support.world import MINUTE, World

EVERY_ROLE = frozenset({"admin", "owner", "analyst", "auditor"})


def test_a_key_and_its_sessions_end_at_its_last_moment(world: World) -> None:
    analyst = world.analyst()
    ends = Restrictions(until_us=world.now() + 60 * MINUTE)
    issued = world.users.issue_key(analyst.name, actor=analyst, restrictions=ends)
    sessions = Sessions(world.database, world.users, lifetime_us=600 * MINUTE)
    token = sessions.open(issued.key)
    assert token is not None
    for signed_in in (world.users.sign_in(issued.key), sessions.find(token)):
        assert signed_in is not None
        assert signed_in.user.scope == KeyScope(until_us=ends.until_us)
    for until_us, is_valid in ((world.now() + MINUTE, True), (world.now(), False)):
        moved = update(api_key).where(api_key.c.id == issued.key_id).values(until_us=until_us)
        world.database.write(lambda connection, moved=moved: connection.execute(moved))
        assert (world.users.sign_in(issued.key) is not None) == is_valid
        assert (sessions.find(token) is not None) == is_valid
    assert sessions.open(issued.key) is None


@pytest.mark.parametrize(
    ("scope", "roles"),
    [
        (WHOLE, EVERY_ROLE),
        (KeyScope(until_us=1), EVERY_ROLE - {"admin"}),
        (KeyScope(limited_key="k"), {"analyst"}),
        (KeyScope(datasets=frozenset({1})), {"analyst"}),
        (KeyScope("k", frozenset({1}), 1), {"analyst"}),
    ],
)
def test_the_roles_of_a_key(scope: KeyScope, roles: set[str]) -> None:
    assert scope.roles(EVERY_ROLE) == roles
    assert scope.roles(frozenset({"owner"})) == roles & {"owner"}


def test_a_limited_key_comes_with_an_account_or_not_at_all(world: World) -> None:
    analyst = world.analyst()
    keys = world.users.keys(analyst.name)
    with pytest.raises(ValueError, match="account of its own"):
        world.users.issue_key(analyst.name, actor=analyst, restrictions=Restrictions(limited=True))

    def fails(*_: object) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        world.users.issue_key(
            analyst.name, actor=analyst, restrictions=Restrictions(True), open_account=fails
        )
    assert world.users.keys(analyst.name) == keys


def test_a_user_without_a_key_is_not_restricted(world: World) -> None:
    analyst = world.analyst()
    assert analyst.scope is WHOLE
    assert replace(analyst, scope=KeyScope(datasets=frozenset())).scope.admits(1) is False
