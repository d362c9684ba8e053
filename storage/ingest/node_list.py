"""Reads an uploaded list of a graph's public node names: one per line, without a header."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.errors import TooLarge
from storage.files.labels import IntegerLabels, NodeLabels, TextLabels
from storage.ingest.batches import Batch
from storage.ingest.csv import headless_column
from storage.ingest.refusals import MOST, WHOLE, Refusal, refuse, refuse_any

INTEGER = r"^(0|-?[1-9][0-9]{0,18})$"
CONTROLS = r"[\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}]"
BLANK = r"^\s*$"
LONGEST_NAME = 256
"""Characters of one name."""


def read_node_list(
    path: Path, *, gzipped: bool = False, limit: int = 2**30, most: int = 50_000_000
) -> NodeLabels:
    """The names in a file of at most ``limit`` bytes and ``most`` lines.

    They are integers if every line is an integer of 64 bits without + or leading zeros, else texts.
    Raises: InvalidRecords if there are no names, or for a name that is blank or repeated, has
        control characters or more than 256 characters; TooLarge.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts: list[Any] = []
    lines = 0
    for batch in headless_column(path, gzipped=gzipped, limit=limit):
        lines += batch.rows
        if lines > most:
            raise TooLarge(f"a graph may have at most {most} nodes")
        names = batch.columns[""].dictionary_decode().cast(pa.large_string())
        refuse_any(_faults(batch, names))
        parts.append(names)
    if not parts:
        refuse(WHOLE, "rows", "no node names: one per line is expected")
    listed = pa.concat_arrays(parts)
    _refuse_repeated(listed)
    if pc.all(pc.match_substring_regex(listed, INTEGER)).as_py():
        try:
            return IntegerLabels.of(listed.cast(pa.int64()).to_numpy())
        except pa.ArrowInvalid:  # a number does not fit 64 bits, so the names stay texts
            pass
    return TextLabels.of(listed)


def _faults(batch: Batch, names: Any) -> Iterator[Refusal]:
    import pyarrow.compute as pc

    masks = {
        "blank": pc.match_substring_regex(names, BLANK),
        "holds a control character": pc.match_substring_regex(names, CONTROLS),
        f"has more than {LONGEST_NAME} characters": pc.greater(pc.utf8_length(names), LONGEST_NAME),
    }
    for fault, mask in masks.items():
        for row in np.flatnonzero(np.asarray(mask))[:MOST]:
            place = batch.numbering.place(row)
            verb = f"is {fault}" if fault == "blank" else fault
            yield place, "node_name", f"line {place[1]} {verb}"


def _refuse_repeated(names: Any) -> None:
    # Codes number names by first appearance. So a name repeats an earlier one if its code is not
    # larger than all codes before it.
    codes: NDArray[Any] = names.dictionary_encode().indices.to_numpy()
    before = np.maximum.accumulate(codes)[:-1]
    repeated = np.flatnonzero(codes[1:] <= before)[:MOST] + 2
    refuse_any(
        (("line", int(line)), "node_name", f"line {line} repeats an earlier name")
        for line in repeated
    )
