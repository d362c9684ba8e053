"""Released numbers have one form, whichever function makes it."""

from __future__ import annotations

import pytest

from mechanisms.model.number import Number, whole_number, whole_numbers


@pytest.mark.parametrize(("value", "error"), [(5, 3), (-7, 0), (1 << 60, 1 << 59)])
def test_the_fast_forms_of_a_whole_number_are_that_of_number(value: int, error: int) -> None:
    expected = Number(value, value - error, value + error).as_dict()
    assert whole_number(value, error) == expected
    assert list(whole_number(value, error)) == list(expected)
    assert whole_numbers([value], error) == {name: [one] for name, one in expected.items()}
