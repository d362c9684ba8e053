"""What utilities of graphs share: columns of nodes, the refusal of degree bounds, the work."""

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.records import GraphRecords, Records, records_of
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import Work, work
from mechanisms.utilities.utility import Utility

#: The error message where the public bound on degrees is so large that sums of a node utility would
#: leave 64 bits on every grid.
DEGREES = (
    "the public bound on degrees is too large for exact arithmetic with this utility; "
    "a smaller max_degree or another sensitivity may fit"
)


def node_column(records: Records, name: str) -> Integers:
    """One prepared private column as int64, shape (nodes,)."""
    return records_of(GraphRecords, records).columns[name].astype("int64")


def node_work(
    utility: Utility, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity
) -> Work:
    """The work of scores of all nodes: a pass for each round of the bisection of δ."""
    grid = utility.grid(dataset, candidates, sensitivity)
    dampened = sensitivity in (Sensitivity.LOCAL, Sensitivity.FLATTENED)
    rounds = grid.horizon.bit_length() if dampened else 1
    return work(f"{utility.name} {sensitivity}", candidates.count(dataset) * rounds)
