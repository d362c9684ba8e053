"""Runs the pages' commands about PostgreSQL as written, except for the addresses."""

from __future__ import annotations

import json
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
from tests.process.documents import blocks, code_of, indented
from tests.process.session import Session
from tests.process.test_documents import run
from tests.process.test_starting import started
from tests.support.databases import fresh
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
#: SQL statements that the database role of the service may not run.
FORBIDDEN = ("DELETE FROM entry", "ALTER TABLE entry DISABLE TRIGGER ALL", "CREATE TABLE x ()")


@pytest.fixture(scope="module")
def server() -> Iterator[URL]:
    """The address of a server, with the rights of its administrator."""
    with postgresql_server() as url:
        if url is None:
            pytest.skip("needs PostgreSQL: apt-get install postgresql")
        yield make_url(url).set(drivername="postgresql")


def sql(server: URL, *statements: str) -> None:
    with psycopg.connect(text(server), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def text(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def variables(server: URL) -> dict[str, str]:
    """The variables that the programs of PostgreSQL read."""
    environment = {"PGHOST": server.host, "PGPORT": server.port, "PGUSER": server.username}
    environment |= {"PGPASSWORD": server.password, "PGDATABASE": server.database}
    return {name: str(value) for name, value in environment.items() if value is not None}


def test_a_dump_is_restored_and_nothing_is_given_back(server: URL, tmp_path: Path) -> None:
    dump, restore, _ = indented("docs/backup.md", 3)
    name = f"purse_{time.time_ns()}"
    first, second = server.set(database=name), server.set(database=f"{name}_restored")
    assert restore.count("purse ") == 2
    restore = restore.replace("purse ", f"{second.database} ", 2)
    data, backup = tmp_path / "data", tmp_path / "kept"
    backup.mkdir()
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
            assert {one.name for one in backup.iterdir()} == {"heads.log", "datasets"}
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
        # By default psql continues after an error: make it fail.
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


def test_from_a_table_of_postgresql_to_the_first_private_answer(
    server: URL, tmp_path: Path
) -> None:
    """The page of sources, typed from top to bottom by operator, owner and analyst."""
    role, file, owner, analyst = blocks((ROOT / "docs/sources.md").read_text("utf-8"), "sh")
    with fresh(server.render_as_string(hide_password=False)) as url:
        shop = make_url(url).set(drivername="postgresql")
        address = shop.render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE people (name TEXT, town TEXT, age INT, smokes BOOL)")
            connection.execute(
                "INSERT INTO people SELECT 'n' || i, (ARRAY['Aix','Brest','Caen'])[i % 3 + 1],"
                " NULLIF(i % 90, 0), i % 2 = 0 FROM generate_series(1, 600) AS i"
            )
        run(tmp_path, role.replace("psql shop", f"psql --quiet '{address}'"))
        reader = shop.set(username="purse_reader", password="choose-another")
        written = "postgresql://purse_reader:choose-another@db.example/shop"
        assert written in file
        run(tmp_path, file.replace(written, reader.render_as_string(hide_password=False)))
        sources = (tmp_path / "sources.toml").read_text()
        (tmp_path / "sources.toml").write_text(
            sources.replace('"exports"', f'"{tmp_path / "exports"}"')
        )
        try:
            with ServiceProcess(
                tmp_path / "data", PURSE_SOURCES=str(tmp_path / "sources.toml"), **QUICK
            ) as service:
                _people(service, tmp_path)
                here = {"PRIVYPURSE_URL": service.url}
                printed = run(tmp_path, owner, **here)
                assert "shop\tpostgresql\tpublic.survey\n" in printed
                assert "survey is ready, version 1\n" in printed
                answer = json.loads(run(tmp_path, analyst, **here))["answer"]
                # Noise of scale 1 exceeds 50 with probability below e⁻⁵⁰.
                assert abs(float(answer["value"]) - 600) < 50
        finally:
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("DROP OWNED BY purse_reader; DROP ROLE purse_reader")


def _people(service: ServiceProcess, folder: Path) -> None:
    """An owner and an analyst, with their keys in ``folder``."""
    (folder / "root.key").write_text(service.admin_key)
    for name, role in (("olympe", "owner"), ("ada", "analyst")):
        line = f"privypurse --key-file root.key users create {name} --role {role} > {name}.key"
        run(folder, line, PRIVYPURSE_URL=service.url)
