"""Maps your own values to the levels in answers: categories and public bins.

The bins come from the public description of the dataset. A number therefore falls into the same
bin as in the service, even if the text of the bin is rounded.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

#: One record of your own: the value of every attribute, by the name of the attribute.
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One registered attribute: numeric with the ``edges`` of its bins, or with its ``values``.

    ``dates`` is the width of the bins of dates: "day", "month", "quarter" or "year".
    """

    name: str
    edges: tuple[float, ...] = ()
    values: tuple[str, ...] = ()
    missing: str | None = None
    clamp: bool = False
    dates: str | None = None

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Self:
        """The column for one member of ``attributes`` in the dataset's public description."""
        name, missing = described["name"], described.get("missing")
        if described["kind"] == "date":
            return cls(name, missing=missing, dates=described["bins"])
        if described["kind"] != "numeric":
            values = described["values"]
            return cls(name, values=() if values == "open" else tuple(values), missing=missing)
        lower, upper = map(float, described["bounds"])
        bins = described.get("bins") or 1
        if isinstance(bins, int):
            inner = (lower + (upper - lower) * i / bins for i in range(1, bins))
            edges = (lower, *inner, upper)
        else:
            edges = tuple(map(float, bins))
        return cls(name, edges, missing=missing, clamp=bool(described.get("clamp")))

    def position(self, value: object, levels: Sequence[str]) -> int:
        """The index of ``value`` in ``levels``, which are in the order of the answer.

        ``value`` may be the text of a level itself. None and NaN count as missing.
        Raises: ValueError if no level contains it.
        """
        if isinstance(value, str) and value in levels:
            return levels.index(value)
        if not self.edges:
            text = self.text(value)
            if text not in levels:
                raise ValueError(f"{self.name}: {text!r} is not a level of this answer")
            return levels.index(text)
        if self._is_missing(value):
            # The bin of missing numbers comes after all other bins.
            return len(levels) - 1
        return min(bisect_right(self.edges, self.number(value)), len(self.edges) - 1) - 1

    def text(self, value: object) -> str:
        """``value`` as one of the declared texts of a categorical attribute, or as bin of dates."""
        if self._is_missing(value):
            return str(self.missing)
        if self.dates is not None:
            return period(value, self.dates)
        if str(value) not in self.values:
            raise ValueError(f"{self.name} has no value {value!r}")
        return str(value)

    def number(self, value: object) -> float:
        """``value`` as a number inside the bounds; a missing value counts as their middle."""
        if not self.edges:
            raise ValueError(f"{self.name} is not numeric")
        lower, upper = self.edges[0], self.edges[-1]
        if self._is_missing(value):
            return lower / 2 + upper / 2
        number = float(value)  # type: ignore[arg-type]
        if self.clamp:
            return min(max(number, lower), upper)
        if not lower <= number <= upper:
            raise ValueError(f"{self.name}: {number:g} lies outside of {lower:g} to {upper:g}")
        return number

    def _is_missing(self, value: object) -> bool:
        if value is not None and value == self.missing:
            return True
        if value is not None and not (isinstance(value, float) and math.isnan(value)):
            return False
        if self.missing is None:
            raise ValueError(f"{self.name}: no value is declared as missing")
        return True


def period(value: object, bins: str) -> str:
    """The text of the bin of a date: "2024-12-31", "2024-12", "2024-Q4" or "2024".

    ``value``: a ``date``, a ``datetime``, or a text that begins with a date.
    """
    day = date.fromisoformat(str(value)[:10])
    texts = {
        "day": day.isoformat(),
        "month": day.isoformat()[:7],
        "quarter": f"{day.year:04}-Q{(day.month + 2) // 3}",
        "year": f"{day.year:04}",
    }
    return texts[bins]


Columns = Mapping[str, Column]


def columns_of(description: Mapping[str, Any]) -> dict[str, Column]:
    """The attributes of a table by name; empty for other kinds of datasets."""
    return {one["name"]: Column.of(one) for one in description.get("attributes", ())}


def value_of(row: Row, name: str) -> Any:
    """The value of an attribute. Raises: ValueError if the row has none."""
    try:
        return row[name]
    except KeyError:
        raise ValueError(f"a row has no value of {name}") from None


def rows_of(rows: Any) -> Iterable[Row]:
    """The rows of a data frame (pandas, polars) or of any sequence of mappings."""
    mappings: Iterable[Row] = rows
    if hasattr(rows, "to_dicts"):
        mappings = rows.to_dicts()
    elif hasattr(rows, "to_dict"):
        mappings = rows.to_dict("records")
    return mappings
