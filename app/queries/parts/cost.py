"""The public cost of a query: the most memory that its work takes at the same time.

Danger: a cost must be a function of the description of the dataset and of the request alone. A
service admits queries by it, so a cost that followed records would show them.

The constants are upper bounds, found by measuring every kind on the same number of records
(``tests/unit/app/queries/test_costs.py``). Records themselves are mapped files, which the system
may drop from memory at any time, and do not count.
"""

from dataclasses import dataclass

from mechanisms.model.domains import Dataset, GraphDomain, PrefixDomain

MEGABYTE = 2**20
#: Bytes that a query of any kind may take besides those below: keystreams, small tables, JSON.
FIXED = 8 * MEGABYTE
#: Bytes for each record, and for each cell of a public table of counts.
RECORD, CELL = 256, 64


@dataclass(frozen=True)
class Cost:
    """The public worst case of one query.

    ``bytes``: the most memory at the same time. ``cells``: the cells of a released table.
    """

    bytes: int
    cells: int = 0


def entries(dataset: Dataset) -> int:
    """The public bound on the records of a dataset: rows, nodes, or values of a public list."""
    domain = dataset.domain
    if isinstance(domain, GraphDomain):
        return domain.nodes
    if isinstance(domain, PrefixDomain):
        return len(domain.public_values)
    return domain.rows or domain.max_rows or 0  # no row count is known before the first upload


def cost_of(dataset: Dataset, *, record: int = RECORD, cells: int = 0, more: int = 0) -> Cost:
    """``record`` bytes for each record, ``CELL`` bytes for each cell, and ``more`` bytes."""
    return Cost(FIXED + entries(dataset) * record + cells * CELL + more)
