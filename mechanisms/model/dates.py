"""Attributes of calendar dates: public bounds, cut into days, months, quarters or years.

The levels follow from the bounds alone, so a period without any record is a level like all others.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

_FORM = re.compile(r"(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}")


def day_number(text: str) -> int:
    """The number of a day such as "2024-12-31", in days. Raises: ValueError for any other text."""
    if not _FORM.fullmatch(text):
        raise ValueError("a date is written as year, month and day: 2024-12-31")
    return int(np.datetime64(text, "D").astype(np.int64))


def periods(first: str, last: str, bins: str) -> NDArray[np.str_]:
    """The bin of each day from ``first`` to ``last``.

    It is written as "2024-12-31", "2024-12", "2024-Q4" or "2024".
    """
    days = np.arange(np.datetime64(first, "D"), np.datetime64(last, "D") + 1)
    if bins != "quarter":
        return days.astype({"day": "M8[D]", "month": "M8[M]", "year": "M8[Y]"}[bins]).astype(str)
    quarters = days.astype("M8[M]").astype(np.int64) % 12 // 3 + 1
    years = np.char.add(days.astype("M8[Y]").astype(str), "-Q")
    return np.char.add(years, quarters.astype(str))


@dataclass(frozen=True)
class DateAttribute:
    """A date from ``first`` to ``last``, both included, cut into public ``bins``.

    ``missing`` is the text of a missing cell, which has a bin of its own after the others. With
    ``clamp``, dates outside the bounds move to the nearer bound; without it they are refused.
    """

    name: str
    first: str
    last: str
    bins: str
    missing: str | None = None
    clamp: bool = False

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The text of each bin in order, then the missing level."""
        return self._levels if self.missing is None else (*self._levels, self.missing)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The number of the bin of each day from ``first`` on."""
        numbers = {text: number for number, text in enumerate(self._levels)}
        return np.array([numbers[text] for text in self._days.tolist()], np.int64)

    @cached_property
    def starts(self) -> NDArray[np.int32]:
        """The first day of each bin, as days from ``first`` on, ascending."""
        return np.searchsorted(self.codes, np.arange(len(self._levels))).astype(np.int32)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The code of each level, which records store in its place."""
        return {level: code for code, level in enumerate(self.levels)}

    def offset(self, text: str) -> int:
        """The days from ``first`` to a date, negative before it. Raises: ValueError."""
        return day_number(text) - day_number(self.first)

    @cached_property
    def _days(self) -> NDArray[np.str_]:
        """The bin of each day."""
        return periods(self.first, self.last, self.bins)

    @cached_property
    def _levels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._days.tolist()))
