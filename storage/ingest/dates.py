"""Translates texts of dates into the codes of their bins, and into days."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.dates import DateAttribute


def days_of(texts: Any, attribute: DateAttribute) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The days from the first date to each text of an Arrow array, and which texts are dates.

    Each text is read once. Days of other texts are 0.
    """
    days = np.zeros(len(texts), np.int64)
    readable = np.zeros(len(texts), np.bool_)
    for place, text in enumerate(texts.to_pylist()):
        try:
            days[place] = attribute.offset(text or "")
        except ValueError:
            continue
        readable[place] = True
    return days, readable
