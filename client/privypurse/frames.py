"""Lists and answers as rows, and as data frames of pandas, polars and Arrow.

Rows are flat: an amount becomes three columns of floats that end in ``_epsilon``, ``_delta`` and
``_rho``. ``_epsilon`` is None for Gaussian noise, and ``_rho`` where the service states none.
Each library is imported when it is asked for, and named where it is absent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from importlib import import_module
from typing import Any, Generic, TypeVar

from privypurse.amounts import Amount

Item = TypeVar("Item")


class Framed(ABC):
    """The base of values that data frames can show."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The rows, as data frames take them: no value is a list or an object."""

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``. Raises: ImportError if pandas is not installed."""
        return library("pandas").DataFrame(self.rows())

    def to_polars(self) -> Any:
        """A ``polars.DataFrame``. Raises: ImportError if polars is not installed."""
        return library("polars").DataFrame(self.rows(), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``. Raises: ImportError if pyarrow is not installed."""
        return library("pyarrow").Table.from_pylist(self.rows())


class Listing(list[Item], Framed, Generic[Item]):
    """A list of values such as accounts, which is a data frame too: ``.to_pandas()``."""

    def rows(self) -> list[dict[str, Any]]:
        return [flat(item) for item in self]


class Stream(Iterator[Item], Framed, Generic[Item]):
    """Values that are fetched on demand; ``rows`` and the data frames fetch all that are left."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)

    def __next__(self) -> Item:
        return next(self._items)

    def rows(self) -> list[dict[str, Any]]:
        return [flat(item) for item in self]


def flat(item: Any) -> dict[str, Any]:
    """The fields of a value as one row; objects such as a whole description are left out."""
    row: dict[str, Any] = {}
    for field in fields(item):
        value = getattr(item, field.name)
        if isinstance(value, Amount):
            epsilon = float(value.epsilon) if value.epsilon.is_finite() else None
            row[f"{field.name}_epsilon"] = epsilon
            row[f"{field.name}_delta"] = float(value.delta)
            row[f"{field.name}_rho"] = None if value.rho is None else float(value.rho)
        elif isinstance(value, Decimal):
            row[field.name] = float(value)
        elif isinstance(value, list | tuple):
            row[field.name] = ", ".join(map(str, value))
        elif not isinstance(value, Mapping) and not is_dataclass(value):
            row[field.name] = value
    return row


def library(name: str) -> Any:
    """An optional library. Raises: ImportError that says what to install."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: pip install {name}") from error
