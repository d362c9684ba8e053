"""Translates one column of cells into the codes of an attribute's levels, and finds its faults.

Each distinct text is coded once, so of a million cells with ten values only ten texts are coded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.domains import Attribute, CategoricalAttribute, NumericAttribute

NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""Matches decimal numbers; no infinities, NaN, hexadecimal digits, spaces or separators."""

GOOD, UNKNOWN_VALUE, NOT_A_NUMBER, OUT_OF_BOUNDS, MISSING = range(5)
FAULTS = {
    UNKNOWN_VALUE: ("unknown_value", "not one of the attribute's values"),
    NOT_A_NUMBER: ("not_a_number", "not a finite decimal number"),
    OUT_OF_BOUNDS: ("out_of_bounds", "outside the attribute's bounds"),
    MISSING: ("missing_value", "a missing value, and the attribute describes none"),
}


@dataclass(frozen=True)
class CodedCells:
    """Level codes, numbers of a numeric attribute, and for each cell its fault or ``GOOD``.

    Codes and numbers of faulty cells have no meaning.
    """

    codes: NDArray[Any]
    values: NDArray[np.float64] | None
    faults: NDArray[np.int8]

    def take(self, places: NDArray[Any]) -> CodedCells:
        values = None if self.values is None else self.values[places]
        return CodedCells(self.codes[places], values, self.faults[places])


def code_cells(column: Any, attribute: Attribute) -> CodedCells:
    """Code an Arrow array of integers, floats or dictionary-encoded strings.

    Categorical cells compare as text, integers by their decimal digits. A null, which Parquet has
    and CSV has not, is a missing cell.
    """
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        if isinstance(attribute, NumericAttribute):
            return _code_numbers(column, attribute)
        column = column.cast(pa.string()).dictionary_encode()
    # A null is appended to the distinct texts, and every cell without a value refers to it.
    unset = len(column.dictionary)
    texts = pa.concat_arrays([column.dictionary, pa.nulls(1, column.dictionary.type)])
    places = column.indices.fill_null(unset).to_numpy(zero_copy_only=False)
    return _code_texts(texts, attribute).take(places)


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
    else:
        numeric = pc.match_substring_regex(texts, NUMBER).fill_null(False)
        readable = pc.if_else(numeric, texts, pa.scalar("nan", texts.type))
        values = pc.cast(readable, pa.float64()).to_numpy(zero_copy_only=False)
        coded = _bin(values, missing, attribute)
    if attribute.missing is None:
        coded.faults[unset] = MISSING
    return coded


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
    return CodedCells(codes, values + 0.0, faults)  # + 0.0 makes −0 a 0
