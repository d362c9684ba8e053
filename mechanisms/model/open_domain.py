"""Open domains: attributes whose values are not described, so the values themselves are private.

Danger: a value that occurs in a single record tells of that record. Values leave only through
``mechanisms.tables.open_groups``, above a threshold that hides every value of one record.
"""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.errors import UnsupportedQuery

#: The public limit on the number of different values of one open attribute, whose values are not
#: listed in the description of the dataset.
MOST_VALUES = 1 << 20
#: The most texts that a condition of a query on an open attribute may list.
MOST_LISTED = 100
#: The steps of a binary search among ``MOST_VALUES`` values. Every search takes all of these steps,
#: so its run time does not depend on the private values.
_STEPS = MOST_VALUES.bit_length()


@dataclass(frozen=True)
class OpenAttribute:
    """An attribute of any texts. ``missing`` is the text that stands for a null in Parquet."""

    name: str
    missing: str | None = None

    @property
    def levels(self) -> NoReturn:
        """There is no public list of values. Raises: UnsupportedQuery."""
        raise UnsupportedQuery(
            f"the values of attribute {self.name} are open",
            supported={"open": ["by of tables", "where", "values_of of top_k"]},
        )


@dataclass(frozen=True, eq=False)
class OpenValues:
    """The private values of an open attribute, in public order, which is that of their bytes.

    ``content`` uint8 holds all texts as UTF-8, one after the other; ``ends`` int64 (values,) are
    their ends, at least one. The code of a value is its place.
    """

    content: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def text(self, code: int) -> str:
        """One value. Danger: private, unless its code was released."""
        return self._bytes(code).decode()

    def doubled_codes(self, texts: tuple[str, ...]) -> NDArray[np.int64]:
        """Twice the code of each text, ascending; an odd number for a text that does not occur.

        The search takes the same number of steps for every text, whatever the values are.
        """
        places = []
        for text in sorted(texts, key=str.encode):
            goal, low, high = text.encode(), 0, len(self.ends)
            for _ in range(_STEPS):
                middle = (low + high) // 2
                is_below = (self._bytes(middle) < goal) & (low < high)
                low, high = (middle + 1, high) if is_below else (low, middle)
            occurs = (self._bytes(low) == goal) & (low < len(self.ends))
            places.append(2 * low if occurs else 2 * low - 1)
        return np.array(places, np.int64)

    def _bytes(self, code: int) -> bytes:
        """The bytes of a value, of the last one for a code beyond it."""
        code = min(code, len(self.ends) - 1)
        start = int(self.ends[code - 1]) if code else 0
        return self.content[start : int(self.ends[code])].tobytes()
