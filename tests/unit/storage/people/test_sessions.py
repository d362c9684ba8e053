"""A session lasts as long as its time, its key and its user, whichever ends first."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select, update

from storage.database import tables
from storage.people.sessions import Sessions
from tests.support.world import World

HOUR = 3600 * 1_000_000


@pytest.fixture
def sessions(world: World) -> Sessions:
    return Sessions(world.database, world.users, HOUR)


@pytest.fixture
def key(world: World) -> str:
    return world.users.issue_key("olga", actor=world.admin).key


def test_a_key_opens_a_session_of_its_user(world: World, sessions: Sessions, key: str) -> None:
    token = sessions.open(key)
    assert token is not None
    signed_in = sessions.find(token)
    assert signed_in is not None
    assert (signed_in.user, signed_in.key_id) == (world.owner, key.split("_")[1])
    with world.database.read() as connection:
        stored = connection.execute(select(tables.web_session)).one()
    assert token.encode() not in stored.token_hash
    assert bytes.fromhex(token) != stored.token_hash


@pytest.mark.parametrize("token", ["", "x", "0" * 64, "0" * 63 + "g", "'", "\0"])
def test_what_was_never_issued_opens_nothing(sessions: Sessions, key: str, token: str) -> None:
    assert sessions.open(key)
    assert sessions.find(token) is None


def test_no_session_without_a_valid_key(sessions: Sessions, key: str) -> None:
    assert sessions.open("nonsense") is None
    assert sessions.open(key[:-1] + ("0" if key[-1] != "0" else "1")) is None


def test_signing_out_ends_one_session(sessions: Sessions, key: str) -> None:
    one, two = sessions.open(key), sessions.open(key)
    assert one is not None
    assert two is not None
    sessions.close(one)
    sessions.close(one)
    assert sessions.find(one) is None
    assert sessions.find(two) is not None


def test_a_revoked_key_ends_its_sessions(world: World, sessions: Sessions, key: str) -> None:
    token = sessions.open(key)
    assert token is not None
    world.users.revoke(key.split("_")[1], actor=world.admin)
    assert sessions.find(token) is None


def test_a_disabled_user_is_signed_out_for_good(world: World, sessions: Sessions, key: str) -> None:
    token = sessions.open(key)
    assert token is not None
    world.users.update("olga", disabled=True, actor=world.admin)
    assert sessions.find(token) is None
    world.users.update("olga", disabled=False, actor=world.admin)
    assert sessions.find(token) is None
    assert sessions.open(key) is not None


def test_roles_count_from_the_next_request_on(world: World, sessions: Sessions, key: str) -> None:
    token = sessions.open(key)
    assert token is not None
    world.users.update("olga", roles=["auditor"], actor=world.admin)
    signed_in = sessions.find(token)
    assert signed_in is not None
    assert signed_in.user.roles == {"auditor"}


def test_a_session_ends_with_its_time_and_its_row_is_swept(
    world: World, sessions: Sessions, key: str
) -> None:
    token = sessions.open(key)
    assert token is not None
    past = update(tables.web_session).values(expires_us=world.now() - 1)
    world.database.write(lambda connection: connection.execute(past))
    assert sessions.find(token) is None
    assert sessions.open(key) is not None
    with world.database.read() as connection:
        assert (
            connection.execute(select(func.count()).select_from(tables.web_session)).scalar() == 1
        )
