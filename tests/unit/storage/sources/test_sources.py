"""Sources list their own tables, read them as uploads, and never repeat what a cell says."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from privypurse.workshop.draft import draft
from privypurse.workshop.table_files import read_table
from storage.errors import Busy, SourceFailed
from storage.sources.parquet_folder import ParquetFolder
from storage.sources.postgresql import PostgreSQL
from storage.sources.source import MOST_READS, SourceReads
from tests.support.databases import fresh

TABLES = """
    CREATE TABLE visits (day DATE, minutes REAL, "is ""new"" now" BOOLEAN, note TEXT);
    INSERT INTO visits VALUES ('2024-03-01', 0.1, true, 'Vq7'), (NULL, NULL, false, NULL);
    CREATE VIEW slow AS SELECT pg_sleep(60)::text AS x;
    CREATE VIEW faulty AS SELECT note::INTEGER AS x FROM visits;
    CREATE FUNCTION stealth() RETURNS INTEGER LANGUAGE plpgsql VOLATILE AS
      'BEGIN INSERT INTO visits (note) VALUES (''written''); RETURN 1; END';
    CREATE VIEW writing AS SELECT stealth() AS x;
    CREATE SCHEMA other;
    CREATE TABLE other."odd ""name" (x INTEGER);
    CREATE SCHEMA "a.b";
    CREATE SCHEMA a;
    CREATE TABLE "a.b".c (x INTEGER);
    CREATE TABLE a."b.c" (x INTEGER);
"""


@pytest.fixture(scope="module")
def database(postgresql: str) -> Iterator[str]:
    """The address of a database with a few tables and views."""
    with fresh(postgresql) as url:
        address = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(TABLES)
        yield address


def content(source: Any, table: str) -> bytes:
    return b"".join(SourceReads(source).read(table))


def test_a_table_of_postgresql_is_read_as_an_upload(database: str) -> None:
    source = PostgreSQL(database, 20)
    names = ["faulty", "slow", "visits", "writing"]
    assert source.tables() == ['other.odd "name', *(f"public.{name}" for name in names)]
    rows = list(csv.reader(io.StringIO(content(source, "public.visits").decode())))
    assert rows == [
        ["day", "minutes", 'is "new" now', "note"],
        ["2024-03-01", "0.1", "true", "Vq7"],
        ["", "", "false", ""],
    ]
    assert content(source, 'other.odd "name') == b"x\n"


@pytest.mark.parametrize(
    ("table", "timeout", "reason"),
    [
        ("public.slow", 0.1, "QueryCanceled (57014)"),
        ("public.faulty", 20, "InvalidTextRepresentation (22P02)"),
        ("public.writing", 20, "ReadOnlySqlTransaction (25006)"),
        ("visits", 20, "the source has no such table now"),
        ("pg_catalog.pg_authid", 20, "the source has no such table now"),
        ('public.visits" --', 20, "the source has no such table now"),
        ("a.b.c", 20, "the source has no such table now"),
    ],
)
def test_a_refusal_of_postgresql_names_a_condition_and_no_cell(
    database: str, table: str, timeout: float, reason: str
) -> None:
    with pytest.raises(SourceFailed) as failed:
        content(PostgreSQL(database, timeout), table)
    assert reason in str(failed.value)
    assert "Vq7" not in str(failed.value)


def test_a_role_sees_what_it_may_read_and_no_address_is_repeated(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS purse_reader")
        connection.execute("CREATE ROLE purse_reader LOGIN PASSWORD 'Zw9'")
        connection.execute("GRANT SELECT ON slow TO purse_reader")
    try:
        url = make_url(database).set(username="purse_reader", password="Zw9")
        reader = PostgreSQL(url.render_as_string(hide_password=False), 20)
        assert reader.tables() == ["public.slow"]
        absent = PostgreSQL("postgresql://purse_reader:Zw9@127.0.0.1:1/none", 20)
        with pytest.raises(SourceFailed) as failed:
            absent.tables()
        assert str(failed.value) == "the source refused: OperationalError (no connection)"
    finally:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("REVOKE ALL ON slow FROM purse_reader")
            connection.execute("DROP ROLE purse_reader")


def test_an_owner_drafts_from_the_same_table(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE VIEW drafts AS SELECT day, minutes, note FROM visits")
    with read_table(database, "drafts") as table:
        drafted = draft(table, "visits")
    kinds = [one["kind"] for one in drafted.description["attributes"]]
    assert kinds == ["date", "numeric", "categorical"]
    assert "Vq7" not in json.dumps(drafted.description)


def test_a_folder_has_its_own_files_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "secret.parquet").write_bytes(b"secret")
    (folder / "link.parquet").symlink_to(tmp_path / "secret.parquet")
    (folder / "below" / "deep.parquet").write_bytes(b"deep")
    (folder / "visits.parquet").write_bytes(b"PAR1" * 600_000)
    (folder / "notes.txt").write_bytes(b"notes")
    source = ParquetFolder(folder)
    assert source.tables() == ["visits"]
    assert content(source, "visits") == b"PAR1" * 600_000
    for table in ("link", "../secret", "below/deep", "notes", ""):
        with pytest.raises(SourceFailed):
            content(source, table)
    with pytest.raises(SourceFailed, match="the folder of the source cannot be read"):
        ParquetFolder(tmp_path / "absent").tables()


def test_one_source_is_read_a_few_times_at_once(tmp_path: Path) -> None:
    (tmp_path / "visits.parquet").write_bytes(b"PAR1")
    source = SourceReads(ParquetFolder(tmp_path))
    reads = [source.read("visits") for _ in range(MOST_READS)]
    assert [next(read) for read in reads] == [b"PAR1"] * MOST_READS
    with pytest.raises(Busy):
        source.tables()
    reads.pop().close()
    assert source.tables() == ["visits"]
