"""PostgreSQL: the role that serves can do its work, and cannot change what is append-only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import create_engine, delete, insert, make_url, text, update
from sqlalchemy.exc import ProgrammingError

from accounting.privacy_loss import PrivacyLoss
from storage.assurance.refusals import Refusals
from storage.assurance.verification import verify
from storage.database import tables
from storage.database.database import Database
from storage.database.privileges import GRANTS, grant_service
from storage.database.tables import metadata
from storage.errors import UnusableDatabase
from storage.ledger.ledger import Reservation
from tests.support.world import World, allowance, loss, request

pytestmark = pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
ROLE = "purse_service"

FORBIDDEN = (
    update(tables.entry).values(d_eps_n=0),
    delete(tables.entry),
    update(tables.settlement).values(attempt=7),
    delete(tables.settlement),
    insert(tables.settlement).values(query_id=uuid4(), attempt=1, answer_hash=bytes(32), at_us=0),
    update(tables.audit).values(action="nothing"),
    delete(tables.audit),
    update(tables.journal).values(fact="{}"),
    delete(tables.journal),
    delete(tables.journal_stream),
    delete(tables.query),
    delete(tables.budget_account),
    delete(tables.dataset),
    text("TRUNCATE entry"),
    text("ALTER TABLE entry DISABLE TRIGGER ALL"),
    text("DROP TRIGGER entry_no_update ON entry"),
    text("DROP TABLE settlement"),
    text("SET session_replication_role = replica"),
    text("CREATE TABLE mine (id bigint)"),
    text("UPDATE alembic_version SET version_num = '0001'"),
)


@pytest.fixture
def served(empty_url: str, tmp_path: Path) -> Iterator[Database]:
    """A database whose schema one role owns, opened by another."""
    Database.open(empty_url, tmp_path).close()
    owner = create_engine(empty_url)
    with owner.begin() as connection:
        connection.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
        connection.execute(text(f"CREATE ROLE {ROLE} LOGIN"))
        grant_service(connection, ROLE)
    url = make_url(empty_url).set(username=ROLE).render_as_string(hide_password=False)
    database = Database.open(url, tmp_path)
    yield database
    database.close()
    with owner.begin() as connection:
        connection.execute(text(f"DROP OWNED BY {ROLE}"))
        connection.execute(text(f"DROP ROLE {ROLE}"))
    owner.dispose()


def test_it_serves(served: Database, tmp_path: Path) -> None:
    world = World(served, tmp_path)
    dataset, analyst = world.ready(loss(1))
    world.users.update(analyst.name, disabled=False, roles=["analyst"], actor=world.admin)
    created = world.ledger.reserve(request(dataset, analyst))
    assert isinstance(created, Reservation)
    assert world.ledger.settle(created, status=201, body=b"x", release_us=0)
    reservation = world.ledger.reserve(request(dataset, analyst))
    assert isinstance(reservation, Reservation)
    assert world.ledger.release(reservation)
    world.ledger.grant(None, analyst.id, allowance(1), actor_id=world.admin.id)
    world.grant(dataset, analyst, loss(2))
    world.versions.withdraw(dataset.name, actor=world.owner)
    counting = Refusals(served)
    counting.count(analyst.id, "d", "busy")
    counting.write()
    assert world.charged(dataset, analyst)[0] == PrivacyLoss(10**8)
    assert verify(served).valid


def test_it_can_change_nothing_that_is_append_only(served: Database, tmp_path: Path) -> None:
    world = World(served, tmp_path)
    world.ready()
    for statement in FORBIDDEN:
        with pytest.raises(ProgrammingError) as refused, served.engine.begin() as connection:
            connection.execute(statement)
        assert getattr(refused.value.orig, "sqlstate", None) == "42501", statement


def test_every_table_is_thought_of(served: Database) -> None:
    assert set(GRANTS) == {table.name for table in metadata.sorted_tables} | {"alembic_version"}
    with served.read() as connection:
        for role in ("x; DROP TABLE entry", "Upper", ""):
            with pytest.raises(UnusableDatabase):
                grant_service(connection, role)
