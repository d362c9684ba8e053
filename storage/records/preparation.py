"""Prepares a version from an uploaded file: arrays in a folder, opened by memory mapping.

Preparation happens once per upload, so the time of a query hardly depends on the records. The
folder gets its name only after all arrays are on the disk.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.graphs.memory import most_parts, preparation_memory
from mechanisms.kernels.level_counts import all_level_tables
from mechanisms.model.domains import (
    Dataset,
    Domain,
    GraphDomain,
    NeighbouringRelation,
    PrefixDomain,
    TableDomain,
)
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.level_tables import split
from mechanisms.model.open_domain import OpenValues
from mechanisms.model.records import GraphRecords, PrefixRecords, Records, TableRecords
from storage.files.arrays import open_arrays, write_arrays
from storage.files.growing_array import sorted_copy
from storage.files.manifest import DamagedFolder
from storage.ingest import (
    Coded,
    CodedGraph,
    CodedTable,
    Truncation,
    UploadLimits,
    read_records,
    release_memory,
)
from storage.ingest.refusals import WHOLE, refuse

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1; an exception stops the work."""

GRAPH, TABLE, PREFIX = "graph", "table", "prefix"
#: The name of the array that holds the number of each row's person. It differs from the names of
#: attributes' arrays, which all have a colon.
PERSONS = "persons"
#: The name of the array that holds all tables of counts, one after the other.
TABLES = "tables"


def prepare_upload(
    path: Path,
    *,
    media_type: str,
    gzipped: bool,
    dataset: Dataset,
    folder: Path,
    executor: Executor,
    limits: UploadLimits | None = None,
    progress: Progress | None = None,
    key: bytes | None = None,
) -> int | None:
    """Read, check, prepare and write the records in a file to the new ``folder``.

    ``key``: the secret of the dataset, 32 bytes, which chooses the rows of persons; needed if the
    description has a column of persons.
    Does not remove ``path``. Returns the row count of a table under the relation ``replace``, which
    is public, else None.
    Raises: UnsupportedMediaType, TooLarge, InvalidRecords, which only the owner may see; then the
        folder does not exist.
    """
    limits = limits or UploadLimits()
    if isinstance(dataset.domain, GraphDomain):
        # A graph whose nodes alone exceed the memory limit is refused before its file is read.
        _parts_within(limits.memory_bytes, dataset.domain.nodes, 0, executor)
    try:
        coded = read_records(
            path,
            media_type=media_type,
            gzipped=gzipped,
            domain=dataset.domain,
            limits=limits,
            persons=None if key is None else Truncation(dataset.records_per_person, key),
            scratch=folder.parent,
            # While a file is read, the share of it that was read is unknown and is reported as 0.
            # ``progress`` is called nevertheless, because an exception that it raises stops the
            # work.
            between=lambda: progress(0.0) if progress is not None else None,
        )
    finally:
        release_memory()
    prepare(coded, folder, executor, limits, progress, dataset.domain)
    public = dataset.neighbouring is NeighbouringRelation.REPLACE
    return coded.rows if public and isinstance(coded, CodedTable) else None


def prepare(
    coded: Coded,
    folder: Path,
    executor: Executor,
    limits: UploadLimits,
    progress: Progress | None = None,
    domain: Domain | None = None,
) -> None:
    """Write coded records and the arrays derived from them to the new ``folder``.

    Raises: InvalidRecords of type ``preparation_limit`` or ``memory_limit`` if deriving arrays
        takes more steps, or more memory without mapped files, than ``limits`` allow.
    """
    if isinstance(coded, CodedGraph):
        nodes, edges = len(coded.indptr) - 1, len(coded.indices) // 2
        parts = _parts_within(limits.memory_bytes, nodes, edges, executor)
        arrays = _graph_arrays(coded, executor, limits.preparation_work, parts, progress)
        write_arrays(folder, GRAPH, arrays)
    elif isinstance(coded, CodedTable):
        if not isinstance(domain, TableDomain):
            raise TypeError("the rows of a table need its description")
        tables = all_level_tables(TableRecords(coded.codes, {}), domain, executor)
        write_arrays(folder, TABLE, {**_table_arrays(coded, folder.parent), TABLES: tables})
    else:
        write_arrays(folder, PREFIX, {"cutoff": np.array([coded.cutoff], np.int64)})
    if progress is not None:
        progress(1.0)


def open_records(folder: Path, domain: Domain) -> Records:
    """The records of a prepared version, memory-mapped and read-only.

    Raises: FileNotFoundError; DamagedFolder if the folder does not fit the domain.
    """
    if isinstance(domain, GraphDomain):
        _, arrays = open_arrays(folder, GRAPH)
        indptr, indices = arrays.pop("indptr"), arrays.pop("indices")
        columns = _under("column", arrays)
        if "core_number" not in columns:
            # An earlier version of the service prepared this folder without core numbers, so they
            # are computed here.
            from mechanisms.kernels.graphs.preparation import late_columns

            columns |= late_columns(indptr, indices)
            for name in columns:
                columns[name].flags.writeable = False
        return GraphRecords(indptr, indices, columns, _under("total", arrays))
    if isinstance(domain, PrefixDomain):
        _, arrays = open_arrays(folder, PREFIX)
        return PrefixRecords(int(arrays["cutoff"][0]))
    _, arrays = open_arrays(folder, TABLE)
    persons = arrays.get(PERSONS)
    if (domain.person is None) != (persons is None):
        raise DamagedFolder("rows have persons exactly if the description has")
    texts, ends = _under("texts", arrays), _under("ends", arrays)
    values = {name: OpenValues(content, ends[name]) for name, content in texts.items()}
    records = TableRecords(
        codes=_under("codes", arrays),
        values=_under("values", arrays),
        ordered=_under("ordered", arrays),
        days=_under("days", arrays),
        persons=persons,
        open_values=values,
    )
    if TABLES in arrays:
        flat = arrays[TABLES]
    else:
        # An earlier version of the service prepared this folder without tables of counts, so they
        # are counted here.
        flat = all_level_tables(records, domain, Inline())
        flat.flags.writeable = False
    try:
        return replace(records, tables=split(flat, domain))
    except ValueError as error:
        raise DamagedFolder(str(error)) from None


def _parts_within(memory: int, nodes: int, edges: int, executor: Executor) -> int:
    """The number of parts in which ``memory`` bytes suffice to prepare a graph.

    Raises: InvalidRecords if the memory does not suffice for any number of parts.
    """
    parts = most_parts(nodes, edges, executor.workers, memory)
    if parts == 0:
        needed = preparation_memory(nodes, edges, executor.workers, 1)
        refuse(
            WHOLE,
            "memory_limit",
            f"preparing this graph takes {needed} bytes of memory, and memory_limit is {memory}",
        )
    return parts


def _graph_arrays(
    graph: CodedGraph, executor: Executor, work_limit: int, parts: int, progress: Progress | None
) -> dict[str, NDArray[Any]]:
    # The kernels are imported here, so that the first upload loads them and not the start of the
    # service.
    from mechanisms.kernels.graphs.preparation import (
        preparation_work,
        prepare_graph,
        prepare_totals,
    )

    if preparation_work(graph.indptr, graph.indices, work_limit) > work_limit:
        refuse(
            WHOLE,
            "preparation_limit",
            f"preparing this graph takes more than the {work_limit} steps of preparation_limit",
        )
    columns = prepare_graph(graph.indptr, graph.indices, executor, progress, parts)
    totals = prepare_totals(graph.indptr, graph.indices, columns["co_degree"], executor, parts)
    named = {f"column:{name}": column for name, column in columns.items()}
    named |= {f"total:{name}": total for name, total in totals.items()}
    return {"indptr": graph.indptr, "indices": graph.indices, **named}


def _table_arrays(table: CodedTable, scratch: Path) -> dict[str, NDArray[Any]]:
    codes = {f"codes:{name}": array for name, array in table.codes.items()}
    values = {f"values:{name}": array for name, array in table.values.items()}
    ordered = {
        f"ordered:{name}": sorted_copy(array, scratch) for name, array in table.values.items()
    }
    days = {f"days:{name}": array for name, array in table.days.items()}
    persons = {} if table.persons is None else {PERSONS: table.persons}
    texts = {f"texts:{name}": one.content for name, one in table.open_values.items()}
    ends = {f"ends:{name}": one.ends for name, one in table.open_values.items()}
    return {**codes, **values, **ordered, **days, **persons, **texts, **ends}


def _under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    start = prefix + ":"
    return {name.removeprefix(start): a for name, a in arrays.items() if name.startswith(start)}
