"""The true positives and the true negatives of public decision trees, as counts of records.

All trees are asked about the same records. So a count ranks them as their rate does, at a
sensitivity of one record and with no divisor that a record could change.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from mechanisms.kernels.forests import Confusion, confusion
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import (
    BOTH_WAYS,
    ByRelation,
    JointByRelation,
    JointFacts,
    SensitivityFacts,
    same_for_all,
)
from mechanisms.model.joint_influence import Independent, JointInfluence
from mechanisms.model.records import Records, TableRecords, records_of
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import Work
from mechanisms.utilities.tables import TABLE_RELATIONS, row_bound, tree_candidates
from mechanisms.utilities.tree_rates import counting_work, exclusive_rate
from mechanisms.utilities.utility import Grid, Measurement


class Hits(ABC):
    """u = the records of one side that a tree labels correctly; Δ = δ = 1.

    An added record raises the count of every tree that labels it correctly, and lowers none. A
    replacement takes one hit away at most and adds one at most.
    """

    name: str
    source = "One record changes the hits of a tree by one at most."
    candidates = "trees"
    relations = TABLE_RELATIONS
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = dict.fromkeys(
        TABLE_RELATIONS,
        SensitivityFacts(
            cap="1",
            function="1",
            horizon="1",
            terms="a replacement takes one away at most and adds one at most",
        ),
    )
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.ADD_REMOVE: same_for_all(
            JointFacts(spread="j", total="n", squares="n", one_way="up")
        ),
        NeighbouringRelation.REPLACE: same_for_all(BOTH_WAYS),
    }
    #: The name of the rate that belongs to this utility. The utility is the number of correctly
    #: labelled records of one class, and the rate divides it by all records of the class.
    rate: ClassVar[str]

    @abstractmethod
    def counted(self, counts: Confusion) -> Integers:
        """The hits of each tree."""

    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:
        """A record has one class: it moves counts and rates of one side only."""
        return exclusive_rate(dataset, self.rate)

    def one_way(
        self,
        relation: NeighbouringRelation,
        sensitivity: Sensitivity,
    ) -> Literal[-1, 0, 1]:
        return 1 if relation is NeighbouringRelation.ADD_REMOVE else 0

    def grid(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
    ) -> Grid:
        tree_candidates(candidates).count(dataset)
        return Grid(bits=0, cap=1, horizon=1, largest=row_bound(dataset))

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        both_ways = self.one_way(dataset.neighbouring, sensitivity) == 0
        return Independent(candidates.count(dataset), 1 << score_bits, both_ways)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        forest = tree_candidates(candidates).forest(dataset)
        counts = confusion(records_of(TableRecords, records), forest)
        return Measurement.constant(self.counted(counts), grid)

    def work(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
    ) -> Work:
        return counting_work(dataset, candidates)


class TruePositives(Hits):
    """u = TP: the records of the positive class that the tree labels as positive."""

    name = "true_positives"
    title = "True positives"
    description = "How many records of the positive class a tree labels as positive."
    rate = "true_positive_rate"

    def counted(self, counts: Confusion) -> Integers:
        return counts.true_positives


class TrueNegatives(Hits):
    """u = TN: the records of all other classes that the tree labels as one of them."""

    name = "true_negatives"
    title = "True negatives"
    description = "How many records of all other classes a tree labels as not positive."
    rate = "true_negative_rate"

    def counted(self, counts: Confusion) -> Integers:
        return counts.true_negatives
