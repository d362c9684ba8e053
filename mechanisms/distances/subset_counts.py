"""What dependency contexts read of the records: tables of sets of k and of k + 1 attributes.

Every set of k + 1 attributes is counted once. Sums of entropies, the tables of the k attributes of
a context, and the rarest classes of every target are derived from its cells. Where the public
domains are too large for tables, the combinations that occur are visited instead.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from mechanisms.distances.context_scores import merged_purest
from mechanisms.distances.plan import MOST_CELLS, Plan
from mechanisms.kernels.cells import margin
from mechanisms.kernels.columns import Column, stacked
from mechanisms.kernels.rarest_class import RarestPairs
from mechanisms.kernels.set_tables import Attributes, cells_of, covering, set_tables
from mechanisms.kernels.subsets import purest_levels, subset_sums
from mechanisms.model.executor import Executor
from mechanisms.model.sensitivity import Integers


class SubsetCounts(ABC):
    """Private counts of one table of records."""

    @abstractmethod
    def sums(self, phi: Integers) -> Mapping[Attributes, int]:
        """ΣΦ over the cells of every set that a context needs; ``phi`` is Φ[0 … rows]."""

    @abstractmethod
    def purest(self, target: int, candidates: Sequence[Attributes]) -> RarestPairs:
        """The pairs (m, β) of all candidates together, for the classes of ``target``."""


def count_subsets(plan: Plan, columns: Sequence[Column], executor: Executor) -> SubsetCounts:
    """The counts that the plan needs. The public domains decide how they are made."""
    codes = stacked(columns)
    if is_dense(plan):
        tables = set_tables(codes, plan.levels, with_target(plan), executor, plan.rows)
        return DenseCounts(plan, tables)
    return SparseCounts(plan, codes, executor)


def is_dense(plan: Plan) -> bool:
    """True if the tables of all sets fit ``MOST_CELLS``, a public fact."""
    sets = with_target(plan)
    if cells_of(plan.levels, sets) > MOST_CELLS:
        return False
    return cells_of(plan.levels, covering(plan.levels, sets)) <= MOST_CELLS


def with_target(plan: Plan) -> list[Attributes]:
    """Every set of a target and a context: k + 1 attributes, in lexicographic order."""
    every = combinations(range(len(plan.levels)), plan.size + 1)
    several = len(plan.targets) > 1
    return [one for one in every if several or plan.targets[0] in one]


def contexts_of(plan: Plan) -> list[Attributes]:
    """Every context: k attributes, in lexicographic order."""
    every = combinations(range(len(plan.levels)), plan.size)
    several = len(plan.targets) > 1
    return [one for one in every if several or plan.targets[0] not in one]


class DenseCounts(SubsetCounts):
    """All tables of sets of k + 1 attributes."""

    def __init__(self, plan: Plan, tables: Mapping[Attributes, Integers]) -> None:
        self._plan, self._tables = plan, tables

    def sums(self, phi: Integers) -> Mapping[Attributes, int]:
        sums = {one: int(phi[table].sum()) for one, table in self._tables.items()}
        for context in contexts_of(self._plan):
            # Only sets of a context and a target have a stored table. The table of the context
            # alone is the sum of such a table over the values of the target.
            target = next(x for x in self._plan.targets if x not in context)
            one = tuple(sorted((*context, target)))
            axes = [axis for axis, x in enumerate(one) if x != target]
            sums[context] = int(phi[margin(self._tables[one], axes)].sum())
        return sums

    def purest(self, target: int, candidates: Sequence[Attributes]) -> RarestPairs:
        classes = self._plan.levels[target]
        # A value (level) without records has the pair of counts (0, 0), and δ must include it,
        # because further records may have this value. ``SparseCounts`` never visits such a value
        # and always enters (0, 0). Here (0, 0) is added too, so that both ways of counting give the
        # same δ.
        tables = [np.zeros((1, classes), np.int64)]
        for candidate in candidates:
            one = tuple(sorted((*candidate, target)))
            table = np.moveaxis(self._tables[one], one.index(target), -1)
            tables.append(table.reshape(-1, classes))
        return RarestPairs.of([np.concatenate(tables)])


class SparseCounts(SubsetCounts):
    """The codes of the records, whose combinations are visited anew for every question."""

    def __init__(self, plan: Plan, codes: Integers, executor: Executor) -> None:
        self._plan, self._codes, self._executor = plan, codes, executor
        self._levels = np.array(plan.levels, np.int64)

    def sums(self, phi: Integers) -> Mapping[Attributes, int]:
        all_sums: dict[Attributes, int] = {}
        for listed in (contexts_of(self._plan), with_target(self._plan)):
            sets = np.array(listed, np.int64)
            sums = subset_sums(self._codes, self._levels, sets, phi, self._executor)
            all_sums.update(zip(listed, sums.tolist(), strict=True))
        return all_sums

    def purest(self, target: int, candidates: Sequence[Attributes]) -> RarestPairs:
        listed, rows = np.array(candidates, np.int64), self._plan.rows
        return merged_purest(
            purest_levels(self._codes, self._levels, target, listed, self._executor, rows)
        )
