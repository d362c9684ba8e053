"""Dates are cut into periods by the calendar, whatever the records are."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.model.dates import DateAttribute, day_number

DAYS = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def test_bins_are_those_of_the_calendar() -> None:
    bounds = "2023-11-30", "2024-03-01"
    assert DateAttribute("d", *bounds, "month").levels == (
        *("2023-11", "2023-12", "2024-01", "2024-02", "2024-03"),
    )
    assert DateAttribute("d", *bounds, "quarter").levels == ("2023-Q4", "2024-Q1")
    assert DateAttribute("d", *bounds, "year", "?").levels == ("2023", "2024", "?")
    days = DateAttribute("d", *bounds, "day").levels
    assert len(days) == 93  # 2024 is a leap year
    assert days[0] == "2023-11-30"
    assert "2024-02-29" in days


@given(
    first=DAYS,
    length=st.integers(0, 800),
    bins=st.sampled_from(["day", "month", "quarter", "year"]),
    data=st.data(),
)
def test_the_code_of_a_day_is_the_place_of_its_bin(
    first: date, length: int, bins: str, data: st.DataObject
) -> None:
    attribute = DateAttribute("d", str(first), str(first + timedelta(length)), bins)
    day = data.draw(st.integers(0, length))
    when = first + timedelta(day)
    assert attribute.offset(str(when)) == day
    text = {
        "day": f"{when}",
        "month": f"{when:%Y-%m}",
        "quarter": f"{when:%Y}-Q{(when.month + 2) // 3}",
        "year": f"{when:%Y}",
    }
    assert attribute.levels[attribute.codes[day]] == text[bins]
    assert sorted(attribute.levels) == list(attribute.levels)


@pytest.mark.parametrize(
    "text",
    [
        "2024-1-1",
        "20240101",
        "2024-W01-1",
        "2023-02-29",
        "2024-01-01T00",
        "",
        "x",
        "0000-01-01",
        "２024-01-01",
    ],
)
def test_other_texts_are_no_dates(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        day_number(text)
