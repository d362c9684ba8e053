"""Tables of pairs of attributes, private and noisy.

Each table is counted or released once and serves both directions. Adding or removing a record
moves one cell of each table by 1, and replacing one moves two cells. So P tables together move by P
or by 2P in the L1 norm, and in the sum of squares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.distances.plan import Pair, Plan
from mechanisms.kernels.columns import Column
from mechanisms.kernels.level_counts import counts_by_levels
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Integers
from mechanisms.noise.discrete_gaussian import Deviation, discrete_gaussian
from mechanisms.noise.discrete_laplace import discrete_laplace


@dataclass(frozen=True)
class PairTables:
    """Counts of pairs i < j, int64 (levels of i, levels of j) each; private or noisy."""

    tables: Mapping[Pair, Integers]

    def of(self, attribute: int, target: int) -> Integers:
        """The table of counts, levels of ``attribute`` by levels of ``target``."""
        if attribute < target:
            return self.tables[attribute, target]
        return self.tables[target, attribute].T


def columns(records: TableRecords, plan: Plan) -> list[Column]:
    """Codes and levels of all participants; shapes follow from the public domain alone."""
    return [(records.codes[a.name], len(a.levels)) for a in plan.attributes]


def count_pairs(
    records: TableRecords, plan: Plan, pairs: Sequence[Pair], executor: Executor
) -> PairTables:
    """The private tables of pairs i < j."""
    named = [one.name for one in plan.attributes]
    sizes = {one.name: len(one.levels) for one in plan.attributes}
    names = [(named[first], named[second]) for first, second in pairs]
    counts = counts_by_levels(records, names, sizes, executor)
    return PairTables(dict(zip(pairs, counts, strict=True)))


def release_pairs(
    private: PairTables,
    plan: Plan,
    loss: PrivacyLoss,
    randomness: Randomness,
    executor: Executor,
) -> PairTables:
    """All tables with noise on every cell of the public domain: Gaussian for a loss in ρ alone.

    Privacy: ``loss`` under the dataset's relation. The number of tables may depend on contexts,
        which are already released.
    """
    noise = plan.table_noise(loss, len(private.tables))
    cells = np.concatenate([table.ravel() for table in private.tables.values()])
    if isinstance(noise, Deviation):
        noisy = discrete_gaussian(cells, noise, randomness, executor)
    else:
        noisy = discrete_laplace(cells, noise, randomness, executor)
    released, start = {}, 0
    for pair, table in private.tables.items():
        released[pair] = noisy[start : start + table.size].reshape(table.shape)
        start += table.size
    return PairTables(released)
