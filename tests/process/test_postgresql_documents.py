"""What the pages say about PostgreSQL, typed as it stands, but for the addresses."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from sqlalchemy.engine import URL

from app.demo.service import ServiceProcess
from tests.architecture.imports import ROOT
from tests.process.conftest import QUICK
from tests.process.documents import code_of, indented
from tests.process.session import Session
from tests.process.test_documents import run
from tests.process.test_starting import started
from tests.support.patience import until
from tests.support.postgresql import postgresql_server

TOOLS = ("psql", "pg_dump", "pg_restore", "createdb")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, TOOLS)),
        reason=f"needs {', '.join(TOOLS)}: apt-get install postgresql",
    ),
]
#: What the role that serves may not do.
FORBIDDEN = ("DELETE FROM entry", "ALTER TABLE entry DISABLE TRIGGER ALL", "CREATE TABLE x ()")


@pytest.fixture(scope="module")
def server() -> Iterator[URL]:
    """The address of a server whose administrator one is."""
    with postgresql_server() as given:
        if given is None:
            pytest.skip("needs PostgreSQL: apt-get install postgresql")
        yield make_url(given).set(drivername="postgresql")


def sql(server: URL, *statements: str) -> None:
    with psycopg.connect(text(server), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def text(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def variables(server: URL) -> dict[str, str]:
    """What the programs of PostgreSQL read."""
    given = {"PGHOST": server.host, "PGPORT": server.port, "PGUSER": server.username}
    given |= {"PGPASSWORD": server.password, "PGDATABASE": server.database}
    return {name: str(value) for name, value in given.items() if value is not None}


def test_a_dump_is_restored_and_nothing_is_given_back(server: URL, tmp_path: Path) -> None:
    dump, restore, _ = indented("docs/backup.md", 3)
    name = f"purse_{time.time_ns()}"
    first, second = server.set(database=name), server.set(database=f"{name}_restored")
    assert restore.count("purse ") == 2
    restore = restore.replace("purse ", f"{second.database} ", 2)
    data, kept = tmp_path / "data", tmp_path / "kept"
    kept.mkdir()
    with ExitStack() as ending:
        sql(server, f"CREATE DATABASE {name}")
        for one in (first, second):
            ending.callback(sql, server, f"DROP DATABASE IF EXISTS {one.database} WITH (FORCE)")
        publishing = {**QUICK, "PURSE_HEADS_INTERVAL": "0.1"}
        with ServiceProcess(data, **publishing, DATABASE_URL=text(first)) as service:
            session = Session.open(service)
            before = session.query("before the dump")
            until((data / "heads.log").exists)
            typed = dump.replace("DIR/", "data/").replace("DEST/", "kept/")
            run(tmp_path, typed, **variables(server), DATABASE_URL=text(first))
            assert {one.name for one in kept.iterdir()} == {"heads.log", "datasets"}
            assert session.query("after it").status_code == 201
        run(tmp_path, restore, **variables(server))
        service = ServiceProcess(data, port=service.port, **QUICK, DATABASE_URL=text(second))
        with service:
            session.service = service
            assert session.query("while frozen").json()["type"].endswith("/frozen")
            assert session.query("before the dump").content == before.content
            line = "./run accept-rollback --data data\n./run verify --data data\n"
            assert run(tmp_path, line, DATABASE_URL=text(second)).endswith("\nvalid\n")
            assert session.spent() == "1"


def test_the_role_that_serves_owns_nothing(server: URL, tmp_path: Path) -> None:
    [one_role] = operating("DATABASE_URL=postgresql")
    [two_roles] = operating("CREATE ROLE")
    statements, migrate, _ = two_roles.rsplit("\n", 2)
    name = f"purse_{time.time_ns()}"
    with ExitStack() as ending:
        ending.callback(sql, server, "DROP ROLE IF EXISTS purse_service", "DROP ROLE purse_owner")
        ending.callback(sql, server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        sql(
            server,
            "CREATE ROLE purse_owner LOGIN CREATEROLE",
            f"CREATE DATABASE {name} OWNER purse_owner",
        )
        owner = server.set(username="purse_owner", database=name)
        # psql reads to the end whatever happens: a mistake is to be one.
        played = f"psql --set=ON_ERROR_STOP=1 --quiet <<'SQL'\n{statements}\nSQL\n"
        run(tmp_path, played, **variables(owner))
        typed = migrate.replace("postgresql://purse_owner@db.example/purse", text(owner))
        assert typed != migrate
        run(tmp_path, typed)
        serving = text(server.set(username="purse_service", database=name))
        line = one_role.strip().replace("postgresql://purse@db.example/purse", serving)
        assert serving in line
        started(tmp_path, line)
        with ServiceProcess(tmp_path / "data", **QUICK, DATABASE_URL=serving) as service:
            assert Session.open(service).query("as the other role").status_code == 201
            for forbidden in FORBIDDEN:
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    sql(make_url(serving), forbidden)


def operating(beginning: str) -> list[str]:
    page = (ROOT / "docs/operating.md").read_text("utf-8")
    return [code.text for code in code_of(page) if code.text.startswith(beginning)]
