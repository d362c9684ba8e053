"""Entropies on a public grid with their exact sensitivity, for contexts by ``mean_su``.

Let h_b be the binary entropy and φ(n) = n·log₂n − (n − 1)·log₂(n − 1). Replacing one of N records
moves an entropy by at most h_b(1/N) = φ(N)/N. This is attained: all records are equal, then one
differs. Under add/remove the bound is h_b(1/(N₀ + 1)), which needs a public lower bound N₀ ≥ 1 on
the rows. The same holds for joint entropies. The published bound (1/N)(1/ln 2 + log₂N) is
valid but larger.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.sensitivity import Integers
from mechanisms.model.table_candidates import table_domain
from mechanisms.utilities.entropy_table import FINEST, entropy_sums, increments
from mechanisms.utilities.tables import row_bound

#: Entropies are rounded to a grid whose steps are at most 2^−FINER divided by the number of rows.
#: Under add/remove that number is private, so the public lower bound on it is used.
FINER = 10


@dataclass(frozen=True)
class EntropyGrid:
    """Entropies are rounded down to steps of 2^−bits; neighbours move one by at most
    ``sensitivity`` steps."""

    bits: int
    sensitivity: int


def entropy_grid(dataset: Dataset) -> EntropyGrid:
    """The public grid. Raises: UnsupportedQuery under add/remove without a lower bound on the rows.

    Proof. With rounded Φ and Ψ of ``entropy_table`` and cell counts n, Q = Φ[N] − ΣΦ[n] moves by at
    most Ψ[N − 1] when a record is replaced. Rounding Q/N down to the grid rounds the bound up.
    Under add/remove N moves too: Q/N is within 2^−g of the entropy, where g is the bits of Ψ. So
    2^−g is added on both sides.
    """
    rows = row_bound(dataset)
    if dataset.neighbouring is NeighbouringRelation.REPLACE:
        bits = FINER + (rows - 1).bit_length()
        bound = Fraction(int(increments(rows - 1, rows, FINEST)[0]), rows << FINEST)
    else:
        fewest = table_domain(dataset).min_rows
        if fewest < 1:
            raise UnsupportedQuery(
                "mean_su under add/remove needs a public lower bound on the rows, min_rows ≥ 1",
                supported={"context": ["baseline", "max_relevance", "max_dependency"]},
            )
        bits = FINER + fewest.bit_length()
        # The sensitivity of an entropy follows from an increment of x·log₂x at N₀, the least number
        # of rows. The exact increment is at most half a step above the rounded one. The bound
        # includes this half step.
        largest = 2 * int(increments(fewest, fewest + 1, FINEST)[0]) + 1
        bound = Fraction(largest, (fewest + 1) << (FINEST + 1)) + Fraction(2, 1 << FINEST)
    return EntropyGrid(bits, max(1, ceil(bound * 2**bits)))


def entropy_steps(tables: Sequence[Integers], rows: int, grid: EntropyGrid) -> Integers:
    """The entropy of each table of counts in grid steps, int64 (tables,); 0 without any record.

    ``rows`` is the public bound on their records. All tables count the same records.
    """
    sums = entropy_sums(rows, FINEST)
    steps = []
    for table in tables:
        count = int(table.sum())
        q = int(sums[count]) - int(sums[table].sum())
        # An entropy is at least 0. Computed from rounded values of x·log₂x, it may come out below 0
        # by less than a step, so 0 replaces it.
        steps.append(max(0, (q << grid.bits) // (max(count, 1) << FINEST)))
    return np.array(steps, dtype=np.int64)
