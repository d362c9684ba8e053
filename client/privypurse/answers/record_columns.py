"""Your own rows as whole columns of a data frame. Needs NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from privypurse.frames import library

#: The type of NumPy arrays. It is ``Any``, because NumPy may not be installed.
Array = Any


def is_frame(rows: Any) -> bool:
    """True for data frames of pandas and polars."""
    return hasattr(rows, "columns") and hasattr(rows, "to_dict")


class _Distinct(NamedTuple):
    """The distinct values of a column, and the number of the value of each row."""

    values: list[Any]
    numbers: Array


class RecordColumns:
    """The columns of a data frame, each read once, when a model first needs it."""

    def __init__(self, frame: Any) -> None:
        self.numpy = library("numpy")
        self._frame, self._columns = frame, dict[str, _Distinct]()

    def __len__(self) -> int:
        return len(self._frame)

    def every(self) -> Array:
        """The numbers of all rows."""
        return self.numpy.arange(len(self))

    def mapped(self, name: str, rows: Array, place: Callable[[Any], int]) -> Array:
        """``place`` of the value of each of these rows, int64; called once per distinct value.

        Raises: ValueError if there is no such column, and as ``place``.
        """
        values, numbers = self._distinct(name)
        of_rows = numbers[rows]
        occurs = self.numpy.bincount(of_rows, minlength=len(values))
        places = self.numpy.zeros(len(values), self.numpy.int64)
        for number in self.numpy.flatnonzero(occurs).tolist():
            places[number] = place(values[number])
        return places[of_rows]

    def _distinct(self, name: str) -> _Distinct:
        if name not in self._columns:
            if name not in self._frame.columns:
                raise ValueError(f"a row has no value of {name}")
            numbers: dict[Any, int] = {}
            # The values 1, 1.0 and True are equal in Python, but their texts differ. So the key of
            # a value contains its class.
            keys = [(value.__class__, value) for value in self._values(name)]
            of_rows = [numbers.setdefault(key, len(numbers)) for key in keys]
            array = self.numpy.array(of_rows, self.numpy.int64)
            self._columns[name] = _Distinct([value for _, value in numbers], array)
        return self._columns[name]

    def _values(self, name: str) -> list[Any]:
        column = self._frame[name].to_numpy()
        if column.dtype.kind == "M":
            # For instants in nanoseconds, ``tolist`` would return whole numbers. So instants become
            # texts, which are their dates.
            texts = column.astype("datetime64[D]").astype(str).tolist()
            return [None if text == "NaT" else text for text in texts]
        # A missing value such as NaN does not equal itself, so it becomes None.
        return [value if (value == value) is True else None for value in column.tolist()]
