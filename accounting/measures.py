"""The whole numbers that a charge is counted in: one row per measure of privacy loss.

A charge, a limit, an entry and a verification run over these rows in their order. What they add
up to, and whether it fits, is ``accounting.account.admits``.
"""

from typing import NamedTuple


class Measure(NamedTuple):
    """One measure. Its unit is 10^−``digits``; amounts are exact, and shares round down."""

    name: str
    digits: int
    #: The column of a query; those of accounts and entries are made from it.
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
