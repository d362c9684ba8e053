"""Reads CSV with a header in blocks: pyarrow parses a block, and this module describes its faults.

Danger: the messages of pyarrow quote cells, so none of them is passed on. A record is one line:
cells may be quoted but contain no line break, and no line is blank.
"""

import csv
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from storage.ingest.batches import Batch, Numbering
from storage.ingest.lines import Lines, line_blocks
from storage.ingest.refusals import MOST, refuse, refuse_any

#: The bytes of integer cells, separators and quotes. A block with any other byte has a cell that is
#: no integer, so no attempt to parse integers is made.
INTEGER_BYTES = b'0123456789-,"\r\n'


def csv_batches(
    path: Path, names: Sequence[str], *, gzipped: bool, limit: int, integers: bool = False
) -> Iterator[Batch]:
    """The records of a CSV file whose columns are ``names``, in any order.

    Args:
        limit: the most bytes after decompression.
        integers: True if all cells should be decimal integers. A batch of only such cells has
            columns of integers. Any other has strings, so that the caller can name a faulty cell.

    Raises: InvalidRecords for any other header, lines with a wrong number of cells, blank lines,
        bytes that are not UTF-8, and where ``line_blocks`` raises it; TooLarge.
    """
    header: list[str] | None = None
    for lines in line_blocks(path, gzipped=gzipped, limit=limit):
        if header is None:
            end = lines.content.index(b"\n") + 1
            header = _header(lines.content[:end], names)
            lines = Lines(lines.content[end:], lines.first + 1, lines.count - 1)
        if lines.count:
            columns = _parse(lines, len(header), integers)
            yield Batch(
                dict(zip(header, columns, strict=True)), lines.count, Numbering(lines.first)
            )
    if header is None:
        refuse(("line", 1), "columns", "the file is empty: a header is expected")


def headless_column(path: Path, *, gzipped: bool, limit: int) -> Iterator[Batch]:
    """The batches of a CSV file without a header and with one column, which gets the name ""."""
    for lines in line_blocks(path, gzipped=gzipped, limit=limit):
        yield Batch({"": _parse(lines, 1, False)[0]}, lines.count, Numbering(lines.first))


def check_columns(columns: Sequence[str], names: Sequence[str], unit: str = "line") -> None:
    """Refuse columns other than exactly ``names``, in any order. Messages quote no other name."""
    described, seen = set(names), set[str]()
    faults: list[str] = []
    for position, name in enumerate(columns, 1):
        if name not in described:
            faults.append(f"column {position} is not a described one")
        elif name in seen:
            faults.append(f"column {name} stands there twice")
        seen.add(name)
        # A header may name a million columns, so the search ends at this many faults.
        if len(faults) == MOST:
            break
    else:
        faults += [f"column {name} is missing" for name in names if name not in seen]
    refuse_any(((unit, 1), "columns", fault) for fault in faults[:MOST])


def _header(line: bytes, names: Sequence[str]) -> list[str]:
    try:
        rows = list(csv.reader([line.decode().rstrip("\r\n")], strict=True))
    except UnicodeDecodeError:
        refuse(("line", 1), "encoding", "line 1 is not UTF-8")
    except csv.Error:
        refuse(("line", 1), "csv", "line 1 is not well-formed CSV")
    header = rows[0] if rows else []
    check_columns(header, names)
    return header


def _parse(lines: Lines, width: int, integers: bool) -> list[Any]:
    import pyarrow as pa

    if integers and not lines.content.translate(None, INTEGER_BYTES):
        try:
            return _columns(lines, width, pa.int64())
        except pa.ArrowInvalid:
            # A cell is empty, has a minus inside, or exceeds 64 bits. So cells are read as texts.
            pass
    try:
        return _columns(lines, width, pa.dictionary(pa.int32(), pa.string()))
    except pa.ArrowInvalid:
        _refuse_lines(lines, width)


def _columns(lines: Lines, width: int, type: Any) -> list[Any]:
    """The columns of a block. Refuses the block unless every line is a record."""
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    names = [str(i) for i in range(width)]
    table = read_csv(
        pa.BufferReader(lines.content),
        read_options=ReadOptions(
            use_threads=False, column_names=names, block_size=len(lines.content) + 1
        ),
        # pyarrow skips blank lines and lines with a wrong number of cells without an error. Such
        # lines are found nevertheless, because the block then has fewer rows than lines.
        parse_options=ParseOptions(invalid_row_handler=lambda _: "skip"),
        convert_options=ConvertOptions(
            column_types=dict.fromkeys(names, type), null_values=[], strings_can_be_null=False
        ),
    )
    if len(table) != lines.count:
        _refuse_lines(lines, width)
    return [column.combine_chunks() for column in table.columns]


def _refuse_lines(lines: Lines, width: int) -> NoReturn:
    """Refuse the lines of a block that are not UTF-8. If all are, refuse those not a record."""
    texts = lines.content.split(b"\n")[: lines.count]
    for type, fault_of in (("encoding", _encoding_fault), ("csv", partial(_fault, width=width))):
        refusals = (
            (("line", line), type, f"line {line} {fault}")
            for line, text in enumerate(texts, lines.first)
            if (fault := fault_of(text)) is not None
        )
        refuse_any(islice(refusals, MOST))
    last = lines.first + lines.count - 1
    refuse(("line", lines.first), "csv", f"lines {lines.first} to {last} are not well-formed CSV")


def _fault(text: bytes, width: int) -> str | None:
    try:
        rows = list(csv.reader([text.decode("utf-8", "replace").rstrip("\r")], strict=True))
    except csv.Error:
        return "is not well-formed CSV (a cell ends on the line it begins on)"
    if not rows or not rows[0]:
        return "is blank"
    if len(rows[0]) != width:
        return f"does not have {width} cell{'s' if width > 1 else ''}"
    return None


def _encoding_fault(text: bytes) -> str | None:
    try:
        text.decode()
    except UnicodeDecodeError:
        return "is not UTF-8"
    return None
