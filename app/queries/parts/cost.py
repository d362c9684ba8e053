"""The public cost of a query: the most memory at the same time, and the most seconds.

Danger: a cost must be a function of the description of the dataset and of the request alone. A
service admits queries by it, so a cost that followed records would show them.

Work is counted by the kind of each part, and ``Speeds`` says how long this machine takes for it.

The constants are upper bounds, found by measuring every kind on the same number of records
(``tests/unit/app/queries/test_costs.py``). Records themselves are mapped files, which the system
may drop from memory at any time, and do not count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from mechanisms.model.domains import Dataset, GraphDomain, PrefixDomain
from mechanisms.model.work import Amount, Work

MEGABYTE = 2**20
#: The bytes that every query may take besides its records and cells, for keystreams, small tables
#: and JSON.
FIXED = 8 * MEGABYTE
#: The bytes that a query may take for each record, and for each cell of a table of counts whose
#: size is public.
RECORD, CELL = 256, 64


@dataclass(frozen=True)
class Speed:
    """Seconds for one call of a kind of work, and for each of its units."""

    call: float
    unit: float

    def seconds(self, amount: Amount) -> float:
        return self.call * amount.calls + self.unit * amount.units


@dataclass(frozen=True)
class Speeds:
    """The speed of this machine at each kind of work, measured with made-up records."""

    #: Seconds that every query takes in addition to its kinds of work.
    query: float
    of: Mapping[str, Speed]

    def seconds(self, work: Work) -> float:
        """The most seconds of a query with this work. Raises: KeyError for an unknown kind."""
        return self.query + sum(self.of[kind].seconds(amount) for kind, amount in work.items())


@dataclass(frozen=True)
class Cost:
    """The public worst case of one query.

    ``bytes``: the most memory at the same time. ``cells``: the cells of a released table.
    ``work``: the most units of each kind of work.
    """

    bytes: int
    work: Work
    cells: int = 0

    def seconds(self, speeds: Speeds) -> float:
        """The most seconds of its work on a machine of these speeds."""
        return speeds.seconds(self.work)


def entries(dataset: Dataset) -> int:
    """The public bound on the records of a dataset: rows, nodes, or values of a public list."""
    domain = dataset.domain
    if isinstance(domain, GraphDomain):
        return domain.nodes
    if isinstance(domain, PrefixDomain):
        return len(domain.public_values)
    # The row count may be unknown before the first upload. Then the bound of the description is
    # used.
    return domain.rows or domain.max_rows or 0


def memory(dataset: Dataset, *, record: int = RECORD, cells: int = 0, more: int = 0) -> int:
    """``record`` bytes for each record, ``CELL`` bytes for each cell, and ``more`` bytes."""
    return FIXED + entries(dataset) * record + cells * CELL + more
