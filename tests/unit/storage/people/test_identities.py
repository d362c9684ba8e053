"""People from elsewhere: one user an issuer and subject, with the roles of the latest token."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.contract.models import NAME_PATTERN
from storage.database.database import Database
from storage.errors import Conflict, ManagedElsewhere
from storage.journal.audit import page_of_lines
from storage.people.identities import Identities, names
from tests.support.world import World

ISSUER = "https://id.example"
ANALYST = frozenset({"analyst"})


@pytest.fixture
def identities(world: World) -> Identities:
    return Identities(world.database)


def test_one_user_however_many_come_at_once(url: str, tmp_path: Path) -> None:
    databases = [Database.open(url, tmp_path) for _ in range(4)]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(
            threads.map(
                lambda i: Identities(databases[i % 4]).admit(ISSUER, "ana", ANALYST, 100 + i),
                range(16),
            )
        )
    assert len({identity.user.id for identity in outcomes if identity is not None}) == 1
    assert None not in outcomes
    last = Identities(databases[0]).find(ISSUER, "ana")
    assert last is not None
    assert last.issued == 115
    for database in databases:
        database.close()


def test_issuer_and_subject_together_are_one(identities: Identities) -> None:
    pairs = [(ISSUER, "ana"), (ISSUER, "Ana"), (ISSUER + "/", "ana"), (ISSUER + "a", "na")]
    assert all(identities.find(*pair) is None for pair in pairs)
    created = [identities.admit(*pair, ANALYST, 1) for pair in pairs]
    assert len({one.user.name for one in created if one}) == len(pairs)
    assert [identities.find(*pair) for pair in pairs] == created


def test_the_latest_token_decides_what_is_kept(world: World, identities: Identities) -> None:
    identity = identities.admit(ISSUER, "ana", ANALYST, 100)
    assert identity is not None
    name = identity.user.name
    for roles, issued, stored in (
        (frozenset({"owner"}), 99, {"analyst"}),
        (frozenset({"owner"}), 100, {"analyst"}),
        (frozenset({"owner", "auditor"}), 101, {"owner", "auditor"}),
        (frozenset[str](), 102, set[str]()),
        (ANALYST, 101, set[str]()),
    ):
        identities.admit(ISSUER, "ana", roles, issued)
        user = world.users.find(name)
        assert user is not None
        assert user.roles == stored
    lines = page_of_lines(world.database, 100).items[::-1]
    actions = [line.action for line in lines if line.subject == name]
    assert actions == ["user.identity", "user.roles", "user.roles"]


def test_a_disabled_user_stays_as_they_are(world: World, identities: Identities) -> None:
    identity = identities.admit(ISSUER, "ana", ANALYST, 100)
    assert identity is not None
    world.users.update(identity.user.name, disabled=True, actor=world.admin)
    again = identities.admit(ISSUER, "ana", frozenset({"admin"}), 200)
    assert again is not None
    assert (again.user.disabled, again.issued) == (True, 100)


def test_no_keys_no_roles_from_here_and_no_admin_to_rely_on(
    world: World, identities: Identities
) -> None:
    identity = identities.admit(ISSUER, "ana", frozenset({"admin"}), 100)
    assert identity is not None
    with pytest.raises(ManagedElsewhere):
        world.users.issue_key(identity.user.name, actor=world.admin)
    with pytest.raises(ManagedElsewhere):
        world.users.update(identity.user.name, roles=["owner"], actor=world.admin)
    with pytest.raises(Conflict):
        world.users.update("admin", disabled=True, actor=world.admin)


def test_names_are_names_and_taken_ones_are_left_alone(
    world: World, identities: Identities
) -> None:
    for subject in ("ana", "auth0|ana", "a" * 255, "|||", "../../x", "olga", "'; DROP TABLE users"):
        for name in names(ISSUER, subject):
            assert re.fullmatch(NAME_PATTERN, name), name
    short, long = names(ISSUER, "ana")
    world.users.create(short, ["owner"], actor=world.admin)
    identity = identities.admit(ISSUER, "ana", ANALYST, 1)
    assert identity is not None
    assert identity.user.name == long
    for name in names(ISSUER, "bo"):
        world.users.create(name, ["owner"], actor=world.admin)
    assert identities.admit(ISSUER, "bo", ANALYST, 1) is None
