"""Attributes of a table as their owner describes them: closed lists, bounded numbers and dates."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, StringConstraints, model_validator

from app.contract.models import Body, Name
from mechanisms.model.dates import DateAttribute, day_number
from mechanisms.model.domains import Attribute, CategoricalAttribute, NumericAttribute
from mechanisms.model.open_domain import OpenAttribute

#: The most values of one attribute. Two bytes encode them, and one code is that of missing cells.
MAX_LEVELS = 65_535
#: Public bounds lie between −10⁹ and 10⁹, where 64-bit floats are exact to a millionth.
MAX_NUMBER = 1e9

Number = Annotated[float, Field(ge=-MAX_NUMBER, le=MAX_NUMBER)]
#: The most days between the earliest and the latest date of an attribute: 200 years.
MOST_DAYS = 73_050

CellText = Annotated[str, StringConstraints(max_length=256)]
ClosedList = Annotated[tuple[CellText, ...], Field(min_length=1, max_length=MAX_LEVELS - 1)]


class Categorical(Body):
    """A closed list of texts, or any texts if ``values`` is "open".

    ``missing``: the text of a missing cell, which is one more value.
    """

    name: Name
    kind: Literal["categorical"]
    values: ClosedList | Literal["open"]
    missing: CellText | None = None

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if self.values != "open" and len(set(self.values)) != len(self.values):
            raise ValueError("a value is repeated")
        return self

    def attribute(self) -> Attribute:
        if self.values == "open":
            return OpenAttribute(self.name, self.missing)
        return CategoricalAttribute(self.name, self.values, self.missing)


class Numeric(Body):
    """A number within ``bounds``. ``bins``: a number of equal bins, or all edges, ascending."""

    name: Name
    kind: Literal["numeric"]
    bounds: tuple[Number, Number]
    bins: (
        Annotated[int, Strict(), Field(ge=1, lt=MAX_LEVELS)]
        | Annotated[tuple[Number, ...], Field(min_length=2, max_length=MAX_LEVELS)]
        | None
    ) = None
    missing: CellText | None = None
    clamp: bool = False

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        lower, upper = self.bounds
        if not lower < upper:
            raise ValueError("the lower bound is below the upper bound")
        edges = self.edges()
        if any(high <= low for low, high in pairwise(edges)):
            raise ValueError("bins have ascending edges, far enough apart to be told from another")
        if (edges[0], edges[-1]) != (lower, upper):
            raise ValueError("the first and the last edge are the bounds")
        if self.missing is not None and _is_number(self.missing):
            raise ValueError("the text of a missing cell is not a number")
        return self

    def edges(self) -> tuple[float, ...]:
        """All edges of the bins, ascending. Without ``bins``, one bin spans the bounds."""
        lower, upper = self.bounds
        if isinstance(self.bins, tuple):
            return tuple(float(edge) for edge in self.bins)
        count = self.bins or 1
        inner = (lower + (upper - lower) * i / count for i in range(1, count))
        return (float(lower), *inner, float(upper))

    def attribute(self) -> Attribute:
        lower, upper = self.bounds
        return NumericAttribute(
            self.name, float(lower), float(upper), self.edges(), self.missing, self.clamp
        )


class Date(Body):
    """A date within ``bounds``, both included, such as "2024-12-31"; ``bins`` is their width."""

    name: Name
    kind: Literal["date"]
    bounds: tuple[CellText, CellText]
    bins: Literal["day", "month", "quarter", "year"]
    missing: CellText | None = None
    clamp: bool = False

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        first, last = map(day_number, self.bounds)
        if first > last:
            raise ValueError("the first date is not after the last one")
        if last - first > MOST_DAYS:
            raise ValueError(f"the dates lie within {MOST_DAYS} days")
        levels = self.attribute().levels
        if len(levels) > MAX_LEVELS:
            raise ValueError(f"there are at most {MAX_LEVELS} bins, the missing one included")
        if self.missing is not None and (_is_date(self.missing) or self.missing in levels[:-1]):
            raise ValueError("the text of a missing cell is neither a date nor a bin")
        return self

    def attribute(self) -> Attribute:
        first, last = self.bounds
        return DateAttribute(self.name, first, last, self.bins, self.missing, self.clamp)


AttributeIn = Annotated[Categorical | Numeric | Date, Field(discriminator="kind")]


def _is_date(text: str) -> bool:
    try:
        day_number(text)
    except ValueError:
        return False
    return True


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
