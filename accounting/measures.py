"""The measures of privacy loss: each counts a charge in whole numbers of its own unit.

Charges, limits, entries and verification have one amount per measure, in this order. The function
``accounting.account.admits`` decides whether a charge fits.
"""

from typing import NamedTuple


class Measure(NamedTuple):
    """One measure. Its unit is 10^−``digits``; amounts are exact, and shares round down."""

    name: str
    digits: int
    #: The column in the table ``query``; the columns of accounts and entries derive from it.
    column: str

    @property
    def limit(self) -> str:
        return f"lim_{self.column}"

    @property
    def charged(self) -> str:
        return f"charged_{self.column}"

    @property
    def moved(self) -> str:
        """The column of an entry, whose amount is signed."""
        return f"d_{self.column}"


MEASURES = (
    Measure("epsilon", 9, "eps_n"),
    Measure("delta", 18, "delta_a"),
)
