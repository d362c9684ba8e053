"""Reads text in blocks of whole lines, so that any file needs a bounded amount of memory.

A line, a block and the whole text after decompression have limits. Line numbers start at 1.
"""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from storage.errors import TooLarge
from storage.ingest.refusals import WHOLE, refuse

CHUNK = 2 * 2**20
LONGEST_LINE = 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class Lines:
    """``count`` whole lines from line ``first`` on; each ends in a line feed."""

    content: bytes
    first: int
    count: int


def line_blocks(path: Path, *, gzipped: bool, limit: int) -> Iterator[Lines]:
    """The lines of a UTF-8 text in blocks of about 2 MB; a byte order mark is skipped.

    Raises: InvalidRecords for a broken gzip file, a zero byte, a carriage return inside a line or
        a line above 1 MB; TooLarge for a text above ``limit`` bytes.
    """
    first, rest = 1, b""
    for number, chunk in enumerate(chunks(path, gzipped=gzipped, limit=limit)):
        block = rest + (chunk.removeprefix(BYTE_ORDER_MARK) if number == 0 else chunk)
        if b"\0" in block:
            line = first + block.count(b"\n", 0, block.index(b"\0"))
            refuse(("line", line), "encoding", f"line {line} holds a zero byte: not a text")
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        _check_lengths(ends, len(block), first)
        if len(ends):
            end = int(ends[-1]) + 1
            yield _lines(block[:end], first, len(ends))
            first, rest = first + len(ends), block[end:]
        else:
            rest = block
    if rest:
        yield _lines(rest + b"\n", first, 1)


def chunks(path: Path, *, gzipped: bool, limit: int) -> Iterator[bytes]:
    """The bytes of a file, decompressed, in pieces of at most 2 MB. Raises: TooLarge."""
    read = 0
    with ExitStack() as stack:
        stream: BinaryIO = stack.enter_context(path.open("rb"))
        if gzipped:
            unzipped = stack.enter_context(gzip.GzipFile(fileobj=stream))
            stream = cast(BinaryIO, unzipped)
        while chunk := _read(stream):
            if read == 0 and not gzipped and chunk.startswith(GZIP_MAGIC):
                refuse(WHOLE, "gzip", "a gzip file: send it with Content-Encoding: gzip")
            read += len(chunk)
            if read > limit:
                raise TooLarge(f"an upload may have at most {limit} bytes after decompression")
            yield chunk


def _read(stream: BinaryIO) -> bytes:
    try:
        return stream.read(CHUNK)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        refuse(WHOLE, "gzip", "the gzip file is damaged or cut off")


def _check_lengths(ends: np.ndarray[tuple[int], np.dtype[np.int64]], size: int, first: int) -> None:
    lengths = np.diff(ends, prepend=-1, append=size) - 1
    if lengths.max() > LONGEST_LINE:
        line = first + int(np.argmax(lengths > LONGEST_LINE))
        refuse(("line", line), "line_length", f"line {line} is above {LONGEST_LINE} bytes")


def _lines(content: bytes, first: int, count: int) -> Lines:
    # The CSV parser ends a line at a lone carriage return, and this module does not. Their line
    # numbers would differ, so such a text is refused.
    if content.count(b"\r") != content.count(b"\r\n"):
        for line, text in enumerate(content.split(b"\n"), first):
            if b"\r" in text[:-1]:
                refuse(("line", line), "csv", f"line {line} holds a carriage return")
        # A carriage return at the end of the whole file is accepted, because the caller has
        # appended a line feed to it.
    return Lines(content, first, count)
