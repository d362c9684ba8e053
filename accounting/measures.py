"""The measures of privacy loss: each counts a charge in whole numbers of its own unit.

Charges, limits, entries and verification have one amount per measure, in this order. The function
``accounting.account.admits`` decides whether a charge fits.

The last measure counts releases without a finite ε and has no limit. In its place a limit has its
δ_c in units of 10⁻¹⁸: the δ, on top of its own, for which the limit in ρ was computed. Such
releases fit only where the limit has the permission in the column ``GAUSSIAN``.
"""

from typing import NamedTuple


class Measure(NamedTuple):
    """One measure. Its unit is 10^−``digits``; amounts are exact, and shares round down."""

    name: str
    digits: int
    #: The column of the table ``query`` with the charge in this measure. The columns for the sums
    #: of accounts and for the changes in entries are named after it.
    column: str
    #: The column of an account with its limit in this measure. For the last measure it is the
    #: column with δ_c, the additional δ for which the limit in ρ was computed.
    limit: str

    @property
    def charged(self) -> str:
        return f"charged_{self.column}"

    @property
    def moved(self) -> str:
        """The column of an entry, whose amount is signed."""
        return f"d_{self.column}"


#: The names of two columns. In an account the column is 1 if the account allows releases without a
#: finite ε, else 0. In an entry it is the change of that number. It is null in an entry that
#: changes no limit and in entries of earlier schemas.
GAUSSIAN, MOVED_GAUSSIAN = "lim_gaussian", "d_gaussian"

MEASURES = (
    Measure("epsilon", 9, "eps_n", "lim_eps_n"),
    Measure("delta", 18, "delta_a", "lim_delta_a"),
    Measure("rho", 15, "rho_f", "lim_rho_f"),
    Measure("unpriced", 0, "unpriced", "lim_delta_c"),
)
