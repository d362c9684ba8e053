"""The true positive and the true negative rate of public decision trees."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from mechanisms.kernels.forests import Confusion, confusion, forest_work
from mechanisms.kernels.long_division import scaled_floor
from mechanisms.kernels.rates import BLOCK
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset, NeighbouringRelation
from mechanisms.model.facts import BOTH_WAYS, ByRelation, JointByRelation, same_for_all
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.records import Records, TableRecords, records_of
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.work import Work, together, work
from mechanisms.utilities.rate_sensitivity import RATE_FACTS, RateSensitivity
from mechanisms.utilities.tables import ROWS, TABLE_RELATIONS, row_bound, tree_candidates
from mechanisms.utilities.utility import Grid, Measurement, both_ways, finest_bits

FINEST = 32


@dataclass(frozen=True)
class CountedTrees:
    """A number of trees that are already evaluated. Implements ``Candidates``."""

    size: int
    #: The private counts of the rows that each tree classifies correctly, by class, and of all rows
    #: of each class. None where only public facts are needed.
    counts: Confusion | None = None
    kind: str = "trees"

    def count(self, dataset: Dataset) -> int:
        return self.size

    def label(self, dataset: Dataset, index: int) -> int:
        return index


def exclusive_rate(dataset: Dataset, rate: str) -> tuple[str, str] | None:
    """The part of utilities of trees that a change moves together with this rate, and no other.

    Under add/remove a record has one class; a replacement may move both sides.
    """
    if dataset.neighbouring is not NeighbouringRelation.ADD_REMOVE:
        return None
    return "the class of a record", rate


def counting_work(dataset: Dataset, candidates: Candidates) -> Work:
    """The public work of counting the rows that every listed tree labels correctly."""
    forest = tree_candidates(candidates).forest(dataset)
    sizes = len(forest.literal), len(forest.columns), forest.literals
    return forest_work(row_bound(dataset), *sizes)


def most_steps(dataset: Dataset, bits: int, weights: Sequence[int] = (1,)) -> int:
    """The most distances at which δ of one tree is worked out, on a grid of so many bits.

    ``weights``: those of the rates of a sum, none 0; of two rates, one is of either class.
    """
    most = row_bound(dataset)
    if len(weights) > 1 and exclusive_rate(dataset, TruePositiveRate.name):
        # Two rates, one for each class, are summed with weights. One of the two classes has at most
        # half of the rows. At the distance at which all its rows are removed, its rate has the
        # sensitivity 1/2. From there on each distance covers at least half the weight of this rate.
        # No weighted sum exceeds the sum of all weights, so few further distances are needed.
        absolute = [abs(weight) for weight in weights]
        most = min(most, most // 2 + 2 * sum(absolute) // min(absolute) + BLOCK)
    # The sensitivity function δ is a step function of the distance. On a step of more than
    # ``BLOCK`` distances, δ is computed in one block of distances at either end, and the rest is
    # skipped. Shorter steps occur only where δ is near its cap. So at most 2^(bits/2) blocks are
    # computed.
    return min(most, BLOCK << bits // 2)


class Rate(ABC):
    """u = hits/total, 1/2 where total = 0. Δ = 1/2 under add/remove, 1 under replace."""

    name: str
    source = (
        "Differentially Private Multi-Objective Selection, section 6.2.3; Δ and δ as in "
        "mechanisms.utilities.rate_sensitivity."
    )
    sensitivity_facts: ClassVar[ByRelation] = RATE_FACTS
    #: One record may raise the rate of a tree that labels it correctly and lower that of another
    #: tree. So scores may move both ways.
    joint_facts: ClassVar[JointByRelation] = dict.fromkeys(TABLE_RELATIONS, same_for_all(BOTH_WAYS))
    candidates = "trees"
    relations = TABLE_RELATIONS
    #: +1 states, for the sensitivity mode ``shifted``, that the sensitivity function δ grows with
    #: the utility. A better tree classifies fewer rows wrongly. Above a rate of one half, fewer
    #: wrong rows give a larger δ.
    direction: Literal[1, -1] = 1

    @abstractmethod
    def counted(self, counts: Confusion) -> tuple[Integers, int]:
        """The hits of each tree, and the number of records that it could hit."""

    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:
        """Under add/remove a record has one class and moves one rate; a replacement may move
        both."""
        return exclusive_rate(dataset, self.name)

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        if not isinstance(candidates, CountedTrees):
            tree_candidates(candidates).count(dataset)
        rows = row_bound(dataset)
        # For N rows, the sensitivity function δ may be as small as 1/(2N). Where 64 bits allow it,
        # a grid step is at most a hundredth of 1/N. Rounding δ up to whole steps then changes it
        # little.
        bits = finest_bits(rows + 1, max(FINEST, (100 * rows).bit_length()), ROWS)
        replaced = dataset.neighbouring is NeighbouringRelation.REPLACE
        return Grid(
            bits=bits,
            cap=1 << bits if replaced else 1 << bits - 1,
            horizon=rows if replaced else rows + 1,
            largest=1 << bits,
        )

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        counted = isinstance(candidates, CountedTrees)
        grid = self.grid(dataset, candidates, sensitivity)
        steps = 1 if sensitivity is Sensitivity.GLOBAL else most_steps(dataset, grid.bits)
        scored = work(f"rates {sensitivity}", candidates.count(dataset) * steps)
        return scored if counted else together(counting_work(dataset, candidates), scored)

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        return both_ways(dataset, candidates, score_bits)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        if isinstance(candidates, CountedTrees):
            assert candidates.counts is not None, "rates are measured on counted trees"
            counts = candidates.counts
        else:
            forest = tree_candidates(candidates).forest(dataset)
            counts = confusion(records_of(TableRecords, records), forest)
        hits, total = self.counted(counts)
        return self.of_counts(hits, np.full(hits.shape, total), dataset, sensitivity, grid)

    def of_counts(
        self,
        hits: Integers,
        totals: Integers,
        dataset: Dataset,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        """u and δ of candidates from their hits among ``totals`` records, int64 (n,)."""
        empty = totals == 0
        utilities = scaled_floor(np.where(empty, 1, hits), np.where(empty, 2, totals), grid.bits)
        if sensitivity is Sensitivity.GLOBAL:
            return Measurement.constant(utilities, grid)
        replaced = dataset.neighbouring is NeighbouringRelation.REPLACE
        delta = RateSensitivity.of_one(hits, totals, grid.bits, replaced, grid.cap, grid.horizon)
        return Measurement(utilities, delta)


class TruePositiveRate(Rate):
    """u = TP/P: the share of records of the positive class that the tree labels as positive."""

    name = "true_positive_rate"
    title = "True positive rate"
    description = "The share of the positive class that a tree labels as positive."

    def counted(self, counts: Confusion) -> tuple[Integers, int]:
        return counts.true_positives, counts.positives


class TrueNegativeRate(Rate):
    """u = TN/N: the share of records of all other classes that the tree labels as one of them."""

    name = "true_negative_rate"
    title = "True negative rate"
    description = "The share of all other classes that a tree labels as not positive."

    def counted(self, counts: Confusion) -> tuple[Integers, int]:
        return counts.true_negatives, counts.negatives
