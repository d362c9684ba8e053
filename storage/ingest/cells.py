"""Translates one column of cells into the codes of an attribute's levels, and finds its faults.

Each distinct text is coded once, so of a million cells with ten values only ten texts are coded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import Attribute, CategoricalAttribute, NumericAttribute
from storage.ingest.dates import days_of
from storage.ingest.open_values import LONGEST, OpenColumn

NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""Matches decimal numbers; no infinities, NaN, hexadecimal digits, spaces or separators."""

GOOD, UNKNOWN_VALUE, NOT_A_NUMBER, OUT_OF_BOUNDS, MISSING, NOT_A_DATE, TOO_LONG, SPACES = range(8)
FAULTS = {
    UNKNOWN_VALUE: ("unknown_value", "not one of the attribute's values"),
    SPACES: ("unknown_value", "one of the attribute's values with spaces around it"),
    NOT_A_NUMBER: ("not_a_number", "not a decimal number such as -1.5, without spaces or units"),
    OUT_OF_BOUNDS: (
        "out_of_bounds",
        "outside the attribute's bounds; `clamp` would move it inside",
    ),
    NOT_A_DATE: ("not_a_date", "not a date such as 2024-12-31"),
    TOO_LONG: ("too_long", f"longer than {LONGEST} characters"),
    MISSING: ("missing_value", "empty cell; set `missing`, or write its text into the cell"),
}


@dataclass(frozen=True)
class CodedCells:
    """Level codes, numbers or days of an attribute, and for each cell its fault or ``GOOD``.

    Codes, numbers and days of faulty cells have no meaning.
    """

    codes: NDArray[Any]
    values: NDArray[np.float64] | None
    faults: NDArray[np.int8]
    days: NDArray[np.int32] | None = None

    def take(self, places: NDArray[Any]) -> CodedCells:
        values = None if self.values is None else self.values[places]
        days = None if self.days is None else self.days[places]
        return CodedCells(self.codes[places], values, self.faults[places], days)


def code_cells(column: Any, attribute: Attribute, values: OpenColumn | None = None) -> CodedCells:
    """Code an Arrow array of integers, floats or dictionary-encoded strings.

    ``values``: the values of an open attribute so far, to which new ones are added.

    Categorical cells compare as text, integers by their decimal digits. A null, which Parquet has
    and CSV has not, is a missing cell.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        if isinstance(attribute, NumericAttribute):
            return _code_numbers(column, attribute)
        column = column.cast(pa.string()).dictionary_encode()
    # Each distinct text is checked and coded once. A null is appended to these texts for all
    # missing cells, whose indices refer to it.
    unset = len(column.dictionary)
    texts = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
    places = column.indices.fill_null(unset).to_numpy(zero_copy_only=False)
    coded = _code_texts(texts, attribute) if values is None else _code_values(texts, values)
    return coded.take(places)


def _code_values(texts: Any, values: OpenColumn) -> CodedCells:
    codes, refused = values.codes(texts.to_pylist())
    fault = np.where(np.asarray(texts.is_null()), MISSING, TOO_LONG)
    return CodedCells(codes, None, np.where(refused, fault, GOOD).astype(np.int8))


def _code_texts(texts: Any, attribute: Attribute) -> CodedCells:
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = unset = np.asarray(texts.is_null())
    if attribute.missing is not None:
        described = pa.scalar(attribute.missing, texts.type)
        texts = pc.fill_null(texts, described)
        missing = np.asarray(pc.equal(texts, described))
    if isinstance(attribute, CategoricalAttribute):
        levels = pa.array(attribute.levels, pa.string()).cast(texts.type)
        codes = pc.index_in(texts, value_set=levels).fill_null(-1).to_numpy(zero_copy_only=False)
        coded = CodedCells(codes, None, np.where(codes < 0, UNKNOWN_VALUE, GOOD).astype(np.int8))
        if coded.faults.any():
            trimmed = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=levels)
            coded.faults[(codes < 0) & np.asarray(trimmed)] = SPACES
    elif isinstance(attribute, DateAttribute):
        coded = _code_dates(texts, missing, attribute)
    else:
        assert isinstance(attribute, NumericAttribute), "open values are coded elsewhere"
        numeric = pc.match_substring_regex(texts, NUMBER).fill_null(False)
        readable = pc.if_else(numeric, texts, pa.scalar("nan", texts.type))
        values = pc.cast(readable, pa.float64()).to_numpy(zero_copy_only=False)
        coded = _bin(values, missing, attribute)
    empty = np.asarray(pc.equal(texts, pa.scalar("", texts.type)).fill_null(True))
    coded.faults[empty & (coded.faults != GOOD)] = MISSING
    if attribute.missing is None:
        coded.faults[unset] = MISSING
    return coded


def _code_dates(texts: Any, missing: NDArray[np.bool_], attribute: DateAttribute) -> CodedCells:
    days, readable = days_of(texts, attribute)
    last = len(attribute.codes) - 1
    faults = np.where(readable | missing, GOOD, NOT_A_DATE).astype(np.int8)
    if not attribute.clamp:
        faults[readable & ~missing & ((days < 0) | (days > last))] = OUT_OF_BOUNDS
    days = np.where(missing, 0, days.clip(0, last))
    codes = np.where(missing, len(attribute.levels) - 1, attribute.codes[days])
    return CodedCells(codes, None, faults, days.astype(np.int32))


def _code_numbers(column: Any, attribute: NumericAttribute) -> CodedCells:
    import pyarrow as pa

    missing = np.asarray(column.is_null())
    values = column.fill_null(0).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    coded = _bin(values, missing, attribute)
    if attribute.missing is None:
        coded.faults[missing] = MISSING
    return coded


def _bin(
    numbers: NDArray[np.float64], missing: NDArray[np.bool_], attribute: NumericAttribute
) -> CodedCells:
    faults = np.zeros(len(numbers), np.int8)
    finite = np.isfinite(numbers)
    faults[~finite & ~missing] = NOT_A_NUMBER
    if not attribute.clamp:
        outside = (numbers < attribute.lower) | (numbers > attribute.upper)
        faults[outside & finite & ~missing] = OUT_OF_BOUNDS
    middle = attribute.lower / 2 + attribute.upper / 2
    values = np.where(finite & ~missing, numbers, middle).clip(attribute.lower, attribute.upper)
    bins = len(attribute.edges) - 1
    # A bin includes its lower edge; the last bin includes both edges.
    codes = np.searchsorted(np.asarray(attribute.edges), values, side="right") - 1
    codes = np.where(missing, bins, codes.clip(0, bins - 1))
    return CodedCells(codes, values + 0.0, faults)  # adding 0.0 turns −0.0 into 0.0
