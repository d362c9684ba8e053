"""Reads an uploaded file against the public description of its dataset.

The description and the published limits bound the memory, whatever is in the file. A refusal of
records outside the description names their lines, which only the owner may see.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from mechanisms.model.domains import Domain, GraphDomain, PrefixDomain
from mechanisms.model.records import PrefixRecords
from storage.errors import UnsupportedMediaType
from storage.ingest.batches import Batch
from storage.ingest.csv import csv_batches
from storage.ingest.graph import ENDS, CodedGraph, EdgeCollector
from storage.ingest.graphml import read_graphml
from storage.ingest.limits import UploadLimits
from storage.ingest.media import CSV, GRAPHML, NODE_LINK, PARQUET, form_of
from storage.ingest.node_link import read_node_link
from storage.ingest.parquet import parquet_batches
from storage.ingest.persons import PersonCollector, Truncation
from storage.ingest.prefix import CUTOFF, read_cutoff
from storage.ingest.table import CodedTable, RowCollector

__all__ = [
    "CodedGraph",
    "CodedTable",
    "Truncation",
    "UploadLimits",
    "read_records",
    "release_memory",
]

Coded = CodedGraph | CodedTable | PrefixRecords


def read_records(
    path: Path,
    *,
    media_type: str,
    gzipped: bool,
    domain: Domain,
    limits: UploadLimits,
    persons: Truncation | None = None,
    scratch: Path | None = None,
    between: Callable[[], None] = lambda: None,
) -> Coded:
    """The records in a file, checked and coded.

    Args:
        media_type: the ``Content-Type`` of the request, with or without parameters.
        gzipped: True for ``Content-Encoding: gzip``, which only CSV may have.
        persons: how rows of persons are chosen; needed if the domain has a column of persons.
        scratch: a folder on the disk for temporary files; None for the default of the system.
        between: called after every block of records; an exception that it raises stops the reading.

    Raises: UnsupportedMediaType, TooLarge, InvalidRecords (at most 20 errors, in file order).
    """
    form = form_of(media_type, gzipped)

    def batches(names: list[str], integers: bool = False) -> Iterator[Batch]:
        limit = limits.decompressed_bytes
        if form == CSV:
            return csv_batches(path, names, gzipped=gzipped, limit=limit, integers=integers)
        if form == PARQUET:
            return parquet_batches(path, names, limit=limit)
        raise UnsupportedMediaType("tables come as text/csv or application/vnd.apache.parquet")

    if isinstance(domain, PrefixDomain):
        return read_cutoff(batches([CUTOFF]), domain)
    collector: EdgeCollector | RowCollector
    if isinstance(domain, GraphDomain):
        if form == GRAPHML:
            return read_graphml(path, domain, limits)
        if form == NODE_LINK:
            return read_node_link(path, domain, limits)
        collector = EdgeCollector(domain, limits.edges, scratch, limits.memory_bytes)
        has_integers = domain.labels is None or isinstance(domain.labels[0], int)
        records = batches(list(ENDS), has_integers)
    else:
        names = [attribute.name for attribute in domain.attributes]
        collected: PersonCollector | None = None
        if domain.person is not None:
            if persons is None:
                raise ValueError("records of persons need the key of their dataset")
            collected = PersonCollector(domain.person, persons, limits.memory_bytes, scratch)
            names.append(domain.person)
        collector = RowCollector(domain, limits.cells, scratch, collected)
        records = batches(names)
    for batch in records:
        collector.add(batch)
        between()
    return collector.finish()


def release_memory() -> None:
    """Return the unused memory of pyarrow's memory pool to the operating system."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
