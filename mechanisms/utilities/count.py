"""The count of a value: the number of records that have it."""

from typing import ClassVar, Literal

from mechanisms.kernels.level_counts import counts_by_levels
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.executor import Inline
from mechanisms.model.facts import (
    ByRelation,
    JointByRelation,
    JointFacts,
    SensitivityFacts,
    same_for_all,
)
from mechanisms.model.joint_influence import Exchange, JointInfluence, Together
from mechanisms.model.level_tables import rows_read
from mechanisms.model.records import Records, TableRecords, records_of
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work, work
from mechanisms.utilities.tables import TABLE_RELATIONS, row_bound, value_candidates
from mechanisms.utilities.utility import Grid, Measurement


class Count:
    """u(v) = the number of records with value v; Δ = δ = 1.

    A replacement moves two counts by one each.
    """

    name = "count"
    title = "Count"
    description = "The number of records with a value."
    source = "One record changes one count by one."
    candidates = "values"
    relations = TABLE_RELATIONS
    direction: Literal[1, -1] = 1
    sensitivity_facts: ClassVar[ByRelation] = dict.fromkeys(
        TABLE_RELATIONS,
        SensitivityFacts(
            cap="1", function="1", horizon="1", terms="a replacement moves two counts by one each"
        ),
    )

    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.ADD_REMOVE: same_for_all(
            JointFacts(spread="1, and 0 for k = n", total="1", squares="1", one_way="up")
        ),
        NeighbouringRelation.REPLACE: same_for_all(
            JointFacts(spread="2, and 0 for k = n", total="2", squares="2", one_way="no")
        ),
    }

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        value_candidates(candidates).count(dataset)
        return Grid(bits=0, cap=1, horizon=1, largest=row_bound(dataset))

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        levels = candidates.count(dataset)
        attribute = value_candidates(candidates).attribute
        table = records_of(TableRecords, records)
        (counts,) = counts_by_levels(table, [(attribute,)], {attribute: levels}, Inline())
        return Measurement.constant(counts, grid)

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        count, one = candidates.count(dataset), 1 << score_bits
        if dataset.neighbouring is NeighbouringRelation.REPLACE:
            return Exchange(count, one)
        return Together(count, one, moving=1)

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        names = (value_candidates(candidates).attribute,)
        return work("level counts", rows_read(dataset, names, row_bound(dataset)))

    def one_way(
        self, relation: NeighbouringRelation, sensitivity: Sensitivity
    ) -> Literal[-1, 0, 1]:
        return 1 if relation is NeighbouringRelation.ADD_REMOVE else 0
