"""Reads a table from a CSV or Parquet file or a database as rows of texts."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from privypurse.frames import library
from privypurse.workshop.cell_texts import cell_text
from privypurse.workshop.databases import (
    DUCKDB,
    POSTGRESQL,
    SQLITE,
    RawTable,
    read_database,
)

CSV, PARQUET = "CSV", "Parquet"
_BATCH = 4096


def form_of(source: str) -> str:
    """What ``source`` is: an address of PostgreSQL, or a file whose first bytes say it.

    Raises: OSError if the file cannot be read.
    """
    if source.startswith(("postgresql://", "postgres://")):
        return POSTGRESQL
    with Path(source).open("rb") as stream:
        start = stream.read(16)
    if start.startswith(b"PAR1"):
        return PARQUET
    if start.startswith(b"SQLite format 3"):
        return SQLITE
    return DUCKDB if start[8:12] == b"DUCK" else CSV


@contextmanager
def read_table(source: str, table: str | None = None) -> Iterator[RawTable]:
    """The table of a file or database; its rows can be read once, within the block.

    ``table``: which table of a database; needed unless it has just one.
    Raises: ValueError with a reason for the owner; ImportError without a driver; OSError.
    """
    form = form_of(source)
    with ExitStack() as stack:
        if form in (CSV, PARQUET) and table is not None:
            raise ValueError(f"{source} is a {form} file, which has no tables to choose from")
        if form == CSV:
            yield stack.enter_context(_csv(Path(source)))
        elif form == PARQUET:
            yield stack.enter_context(_parquet(Path(source)))
        else:
            yield stack.enter_context(read_database(form, source, table))


@contextmanager
def as_upload(source: str, table: str | None = None) -> Iterator[Path]:
    """A file of ``source`` that the service reads; a table of a database is written as CSV.

    The copy lies in a folder that no other user of the machine can read, until the block ends.
    """
    if form_of(source) in (CSV, PARQUET) and table is None:
        yield Path(source)
        return
    with (
        TemporaryDirectory(prefix="privypurse-") as folder,
        read_table(source, table) as read,
    ):
        file = Path(folder) / "records.csv"
        with file.open("w", newline="", encoding="utf-8") as stream:
            lines = csv.writer(stream, lineterminator="\n")
            lines.writerow(read.names)
            lines.writerows(read.rows)
        yield file


@contextmanager
def _csv(path: Path) -> Iterator[RawTable]:
    with ExitStack() as stack:
        raw = stack.enter_context(path.open("rb"))
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        content = stack.enter_context(gzip.GzipFile(fileobj=raw)) if is_gzip else raw
        text = stack.enter_context(io.TextIOWrapper(content, "utf-8-sig", newline=""))
        rows = csv.reader(text, strict=True)
        try:
            names = next(rows, [])
            yield RawTable(names, _rows(rows, len(names)))
        except UnicodeDecodeError:
            raise ValueError(f"{path} is not UTF-8") from None
        except csv.Error as error:
            raise ValueError(f"{path}, line {rows.line_num}: {error}") from None


def _rows(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise ValueError(f"row {number} after the header does not have {width} cells")
        yield row


@contextmanager
def _parquet(path: Path) -> Iterator[RawTable]:
    file = library("pyarrow.parquet").ParquetFile(path)
    with file:
        yield RawTable(
            list(file.schema_arrow.names),
            (
                [cell_text(value) for value in row]
                for batch in file.iter_batches(batch_size=_BATCH)
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
            ),
        )
