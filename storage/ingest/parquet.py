"""Reads Parquet in batches of rows with bounded memory, because a small file may unpack to much.

Texts stay dictionary-encoded while they are read, because a million cells may refer to one long
text. The types of all columns are checked before any of them is read.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from storage.errors import TooLarge
from storage.ingest.batches import Batch, Numbering
from storage.ingest.csv import check_columns
from storage.ingest.refusals import WHOLE, refuse, refuse_any

ROWS = 2**16
LARGEST_CHUNK = 256 * 2**20
"""The most bytes that one column of one row group may unpack to."""
METADATA = 16 * 2**20
"""The most bytes of a text, and elements of a list, in the metadata of a file."""
ENCODINGS = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "RLE", "BIT_PACKED"})
"""The accepted encodings. Delta-encoded texts may unpack to any multiple of their stated size."""
NOT_PARQUET = "not a Parquet file that can be read"


def parquet_batches(path: Path, names: Sequence[str], *, limit: int) -> Iterator[Batch]:
    """The records of a Parquet file whose columns are ``names``, in any order.

    Columns may have integers, floats, booleans (which become the texts "true" and "false") and
    strings, plain or dictionary-encoded. Refusals number rows from 1.

    Raises: InvalidRecords for other columns, types or encodings, or a damaged file; TooLarge if
        it unpacks to more than ``limit`` bytes, or a part of it to more than ``LARGEST_CHUNK``.
    """
    import pyarrow as pa

    try:
        with _open(path) as file:
            _check(file, names, limit)
            texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
        with _open(path, texts) as file:
            first = 1
            for batch in file.iter_batches(batch_size=ROWS, use_threads=False):
                columns = {name: _plain(batch.column(name)) for name in names}
                yield Batch(columns, batch.num_rows, Numbering(first, "row"))
                first += batch.num_rows
    except (pa.ArrowException, OSError, MemoryError):
        # Danger: messages of pyarrow may quote records, so none is passed on. A failing disk raises
        # OSError here, as a damaged file does, so it is reported as a damaged file too.
        refuse(WHOLE, "parquet", NOT_PARQUET)


def _open(path: Path, as_dictionary: Sequence[str] = ()) -> Any:
    from pyarrow.parquet import ParquetFile

    return ParquetFile(
        path,
        read_dictionary=list(as_dictionary),
        buffer_size=2**20,
        pre_buffer=False,
        thrift_string_size_limit=METADATA,
        thrift_container_size_limit=METADATA,
    )


def _check(file: Any, names: Sequence[str], limit: int) -> None:
    """Check the metadata of a file before any page is unpacked."""
    check_columns(file.schema_arrow.names, names, "row")
    fault = "holds neither texts nor integers, floats, booleans or dates"
    refuse_any(
        (("column", field.name), "column_type", f"column {field.name}: {fault}")
        for field in file.schema_arrow
        if not _accepted(field.type)
    )
    metadata, unpacked = file.metadata, 0
    for group in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(position)
            if not ENCODINGS.issuperset(chunk.encodings):
                refuse(WHOLE, "parquet", "texts are in delta encoding; write them as PLAIN")
            if chunk.total_uncompressed_size > LARGEST_CHUNK:
                raise TooLarge(f"a column of a row group may unpack to {LARGEST_CHUNK} bytes")
            unpacked += chunk.total_uncompressed_size
    if unpacked > limit:
        raise TooLarge(f"an upload may have at most {limit} bytes after decompression")


def _accepted(type: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(type):
        return _is_text(type.value_type)
    number = types.is_integer(type) or types.is_floating(type)
    return bool(number or types.is_boolean(type) or types.is_date(type) or _is_text(type))


def _is_text(type: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(type) or types.is_large_string(type))


def _plain(column: Any) -> Any:
    """The column in a type that a ``Batch`` may have: booleans and dates become texts.

    Floats become doubles.

    Texts become dictionaries with 32-bit indices.
    """
    import pyarrow as pa

    if pa.types.is_boolean(column.type) or pa.types.is_date(column.type):
        return column.cast(pa.string()).dictionary_encode()
    if pa.types.is_dictionary(column.type):
        indices = column.indices.cast(pa.int32())
        return pa.DictionaryArray.from_arrays(indices, column.dictionary)
    if _is_text(column.type):
        return column.dictionary_encode()
    return column.cast(pa.float64()) if pa.types.is_floating(column.type) else column
