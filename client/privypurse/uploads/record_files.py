"""Writes tables and graphs of other libraries as files that the service reads."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from privypurse.frames import library


@contextmanager
def as_file(records: Any) -> Iterator[Path]:
    """A file with the records, which exists until the end of the block.

    Args:
        records: a path; a data frame of pandas or polars; a table, a batch or a reader of Arrow, or
            any object with the Arrow stream interface; a graph of NetworkX, without directions.

    Raises: TypeError for any other object; ImportError without the library that writes the file.
    """
    if isinstance(records, str | Path):
        yield Path(records)
        return
    with TemporaryDirectory(prefix="privypurse-") as folder:
        # The temporary folder has mode 0700, so that no other user of the machine can read the
        # records.
        yield _written(records, Path(folder))


def _written(records: Any, folder: Path) -> Path:
    if hasattr(records, "edges") and hasattr(records, "is_directed"):
        return _edges(records, folder / "records.csv")
    file = folder / "records.parquet"
    if hasattr(records, "write_parquet"):  # the records are a data frame of polars
        records.write_parquet(file)
        return file
    if hasattr(records, "to_parquet"):
        records.to_parquet(file, index=False)
        return file
    if hasattr(records, "__arrow_c_stream__") or hasattr(records, "__arrow_c_array__"):
        pyarrow = library("pyarrow")
        library("pyarrow.parquet").write_table(pyarrow.table(records), file)
        return file
    raise TypeError(
        "records are a file, a table of pandas, polars or Arrow, or a graph of NetworkX, not "
        f"{type(records).__name__}"
    )


def _edges(graph: Any, file: Path) -> Path:
    """Write each edge once; an edge in both directions, or several times, is one."""
    pairs = {frozenset(edge[:2]): edge[:2] for edge in graph.edges}
    with file.open("w", newline="", encoding="utf-8") as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(["source", "target"])
        lines.writerows(pairs.values())
    return file
