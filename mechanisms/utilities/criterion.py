"""The common part of utilities of attributes, which read only the class counts of each level."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import BOTH_WAYS, JointByRelation, JointFacts
from mechanisms.model.joint_influence import Independent, JointInfluence
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import Work, together, work
from mechanisms.utilities.tables import (
    TABLE_RELATIONS,
    attribute_candidates,
    attribute_tables,
    row_bound,
    table_counting,
)
from mechanisms.utilities.utility import Grid, Measurement

_ADDED_LOWERS = JointFacts(spread="j", total="n", squares="n", one_way="down")


class Criterion(ABC):
    """A utility of attributes by their level × class counts.

    Implements ``Utility`` except for its names and descriptions.
    """

    name: str
    candidates = "attributes"
    relations = TABLE_RELATIONS
    #: +1 states, for the sensitivity mode ``shifted``, that the sensitivity function δ grows with
    #: the utility wherever it varies. A purer split has fewer records of its rarest class, and δ
    #: grows as these become fewer.
    direction: Literal[1, -1] = 1
    #: By default an added record never raises the utility of any attribute, but it may raise or
    #: lower the sensitivity function δ. So only scores that divide by the global sensitivity always
    #: fall together. ``Max`` overrides this.
    joint_facts: ClassVar[JointByRelation] = {
        NeighbouringRelation.ADD_REMOVE: {
            **dict.fromkeys(Sensitivity, BOTH_WAYS),
            Sensitivity.GLOBAL: _ADDED_LOWERS,
        },
        NeighbouringRelation.REPLACE: dict.fromkeys(Sensitivity, BOTH_WAYS),
    }

    @abstractmethod
    def table_grid(self, rows: int) -> Grid:
        """The grid for at most ``rows`` rows, for any attributes."""

    @abstractmethod
    def of_tables(
        self, tables: Sequence[Integers], dataset: Dataset, sensitivity: Sensitivity, grid: Grid
    ) -> Measurement:
        """u and δ of candidates from their level × class counts, int64 each."""

    def prepared(self, dataset: Dataset, grid: Grid) -> object:
        """Public tables that ``of_tables`` reads besides counts.

        A caller that measures many times holds a reference, so that they are built once.
        """
        return None

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        attribute_candidates(candidates).count(dataset)
        return self.table_grid(row_bound(dataset))

    def one_way(
        self, relation: NeighbouringRelation, sensitivity: Sensitivity
    ) -> Literal[-1, 0, 1]:
        """The sign of all changes of a score when a record is added; 0 if both signs occur."""
        added = relation is NeighbouringRelation.ADD_REMOVE
        return -1 if added and sensitivity is Sensitivity.GLOBAL else 0

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        listed = attribute_candidates(candidates)
        levels = [len(one.levels) for one in listed.attributes(dataset)]
        classes = len(listed.classes(dataset).levels)
        rows = row_bound(dataset)
        class_name = listed.classes(dataset).name
        counted = table_counting(dataset, listed.names, class_name, rows)
        return together(counted, self.table_work(rows, sum(levels), classes, sensitivity))

    def table_work(self, rows: int, levels: int, classes: int, sensitivity: Sensitivity) -> Work:
        """The work of scores from class counts of so many levels in all, of ``rows`` in each."""
        if sensitivity is Sensitivity.GLOBAL:
            return work(f"{self.name} global", rows + levels * classes)
        # A dampened score is the number of distances over which the sensitivity function δ sums up
        # to the utility. It is at most the number of records outside of the largest class, because
        # removing these makes the utility 0.
        return work(f"{self.name} {sensitivity}", (rows - rows // classes) * levels)

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        both = self.one_way(dataset.neighbouring, sensitivity) == 0
        return Independent(candidates.count(dataset), 1 << score_bits, both_ways=both)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        tables = attribute_tables(records, dataset, candidates)
        return self.of_tables(tables, dataset, sensitivity, grid)
