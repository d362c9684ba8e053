"""The node columns that utilities of graphs read, and the refusal of degree bounds."""

from mechanisms.model.records import GraphRecords, Records, records_of
from mechanisms.model.sensitivity import Integers

#: The refusal of ``finest_bits`` for utilities of nodes.
DEGREES = (
    "the public bound on degrees is too large for exact arithmetic with this utility; "
    "a smaller max_degree or another sensitivity may fit"
)


def node_column(records: Records, name: str) -> Integers:
    """One prepared private column as int64, shape (nodes,)."""
    return records_of(GraphRecords, records).columns[name].astype("int64")
