"""A weighted sum of utilities, in whole numbers: whole weights and one common grid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.facts import ObjectiveFacts, SensitivityFacts
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.work import Work, together, work
from mechanisms.objectives import direction
from mechanisms.objectives.hubs import Hubs
from mechanisms.objectives.objective import Term, common_candidates, common_relations
from mechanisms.objectives.pareto import Pareto
from mechanisms.objectives.sum_influence import Member, sum_influence
from mechanisms.objectives.sum_sensitivity import SumSensitivity, WeightedMember, in_one_piece
from mechanisms.objectives.weights import exact_weight, whole_weights
from mechanisms.utilities.tree_rates import Rate, most_steps
from mechanisms.utilities.utility import Grid, Measurement, Objective


@runtime_checkable
class ExclusiveUtility(Protocol):
    """A utility that one change cannot move together with certain others."""

    def exclusive(self, dataset: Dataset) -> tuple[str, str] | None:
        """(group, part), or None: a change moves utilities of one part of a group only.

        This must hold under ``dataset.neighbouring`` for all records.
        """
        ...


@dataclass(frozen=True)
class Weighting:
    """Public: the whole weights W, and the grid on which each member is measured.

    ``scale`` is W over the requested weights, up to rounding: U / (2^bits · scale) is Σ w·u.
    """

    weights: tuple[int, ...]
    scale: Fraction
    members: tuple[Grid, ...]
    grid: Grid


#: The fixed time of one vectorised call is as long as computing the scores of this many candidates.
CALL = 1000


class WeightedSum:
    """The sum of utilities times whole weights W. Implements ``Objective``.

    Each sum is over the members: u = Σ W·u, Δ = Σ |W|·Δ, δ = Σ |W|·min(δ, Δ); T is the largest T.

    A negative weight prefers candidates with a low utility. Among utilities that one change cannot
    move together (``ExclusiveUtility``) the maximum replaces the sum.

    Source: Differentially Private Multi-Objective Selection, Theorems 5.3 and 5.4.
    """

    facts = ObjectiveFacts(
        title="Weighted sum",
        description=(
            "Candidates are ranked by the sum of several utilities, each times its weight; a "
            "negative weight prefers low values. Only the ratios of the weights count."
        ),
        source="Differentially Private Multi-Objective Selection, Theorems 5.3 and 5.4.",
        sensitivity=SensitivityFacts(
            cap="sum of |w| Δ",
            function="sum of |w| min(δ(t), Δ)",
            horizon="the largest T of the members",
            terms=(
                "over the members, w their weights; the maximum in place of the sum over members "
                "that one change cannot move together: true positive and true negative rate "
                "under add_remove"
            ),
        ),
        shift=direction.RULE,
        joint=(
            "Nodes: 2 + j max(a, b) + (j - 2) min(a, b) for j = min(k, n - k) > 1, where a and b "
            "are the sums, over the members, of the most that an added edge lowers and raises a "
            "common neighbour of its ends, over Δ. Under local and shifted only if no δ depends "
            "on more than the degree; else 2j. Attributes and trees: j under add_remove if an "
            "added record moves all terms one way, under other sensitivities than global only if "
            "their δ are constant; else 2j."
        ),
    )

    def __init__(self, terms: Sequence[Term]) -> None:
        members = [term.member for term in terms]
        if not terms or any(isinstance(member, Pareto | WeightedSum) for member in members):
            raise UnsupportedQuery(
                "the members of a weighted sum are utilities, one or more",
                supported={"objective": "weighted_sum"},
            )
        self.candidates = common_candidates(members)
        self.relations = common_relations(members)
        self._terms = _merged(terms)
        if not self._terms:
            raise UnsupportedQuery("the weights of a weighted sum are not all zero")
        self.direction: Literal[1, -1] = direction.direction(self._terms)

    def grid(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Grid:
        return self.weighing(dataset, candidates, sensitivity).grid

    def weighing(
        self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity
    ) -> Weighting:
        """The weights and the common grid. Raises: UnsupportedQuery if no grid fits."""
        own = [member.grid(dataset, candidates, sensitivity) for member, _ in self._terms]
        requested = [weight for _, weight in self._terms]
        fitting = _finest_fit(tuple(own), tuple(requested), sensitivity)
        if fitting is None:
            raise UnsupportedQuery(
                "the public bounds of this dataset are too large for an exact weighted sum of "
                "these utilities; another sensitivity may fit"
            )
        bits, weights = fitting
        scale = Fraction(max(map(abs, weights))) / max(map(abs, requested))
        return self._weighing(dataset, own, weights, scale, bits)

    def measure(
        self,
        records: Records,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
    ) -> Measurement:
        chosen = self.weighing(dataset, candidates, sensitivity)
        if chosen.grid != grid:
            raise ValueError("a weighted sum is measured on its own grid")
        utilities = np.zeros(candidates.count(dataset), dtype=np.int64)
        weighed = []
        for (member, _), weight, own in zip(
            self._terms, chosen.weights, chosen.members, strict=True
        ):
            # A member's utility may be rounded to larger steps than the sum. The ratio of the steps
            # is a power of two, so they are converted exactly.
            factor = weight << (grid.bits - own.bits)
            measured = member.measure(records, dataset, candidates, sensitivity, own)
            utilities += factor * measured.utilities
            weighed.append(WeightedMember(abs(factor), measured.delta, own.cap))
        groups = [[[weighed[i] for i in part] for part in group] for group in self._groups(dataset)]
        sums = SumSensitivity(groups, grid.cap, grid.horizon, utilities.size)
        return Measurement(utilities, in_one_piece(sums))

    def work(self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity) -> Work:
        count, own = candidates.count(dataset), sensitivity
        kind, each, steps = f"sum {sensitivity}", count + CALL, 1
        if sensitivity in (Sensitivity.LOCAL, Sensitivity.FLATTENED):
            chosen = self.weighing(dataset, candidates, sensitivity)
            if all(isinstance(member, Rate) for member, _ in self._terms):
                # All utilities are rates of trees, and ``in_one_piece`` makes one sensitivity
                # function δ of theirs. So each rate takes only the work of the mode ``global``, and
                # δ is computed once for the sum.
                own, kind, each = Sensitivity.GLOBAL, f"rates {sensitivity}", count
                steps = most_steps(dataset, chosen.grid.bits, chosen.weights)
            else:
                # For nodes, sums of δ(t) over distances t have a closed form, so a binary search
                # finds how many distances are needed. For all other candidates they are added up
                # distance by distance.
                horizon = chosen.grid.horizon
                steps = horizon.bit_length() if self.candidates == "nodes" else horizon
        members = [member.work(dataset, candidates, own) for member, _ in self._terms]
        return together(*members, work(kind, len(members) * steps * each))

    def joint_influence(
        self,
        dataset: Dataset,
        candidates: Candidates,
        sensitivity: Sensitivity,
        grid: Grid,
        score_bits: int,
    ) -> JointInfluence:
        members = self._members(dataset, candidates, sensitivity, grid)
        return sum_influence(members, dataset, candidates, sensitivity, grid, score_bits)

    def clipped(self, dataset: Dataset, candidates: Candidates, grid: Grid) -> Hubs | None:
        """As in ``ClippedObjective``, for degree and density, both with positive weights."""
        members = self._members(dataset, candidates, Sensitivity.LOCAL, grid)
        return Hubs.of(members, dataset)

    def _members(
        self, dataset: Dataset, candidates: Candidates, sensitivity: Sensitivity, grid: Grid
    ) -> list[Member]:
        """The utilities with the factors of their steps on ``grid``, and their own grids."""
        chosen = self.weighing(dataset, candidates, sensitivity)
        terms = zip(self._terms, chosen.weights, chosen.members, strict=True)
        return [
            (member, weight << (grid.bits - own.bits), own) for (member, _), weight, own in terms
        ]

    def _weighing(
        self,
        dataset: Dataset,
        own: Sequence[Grid],
        weights: tuple[int, ...],
        scale: Fraction,
        bits: int,
    ) -> Weighting:
        members = tuple(grid.coarser(min(bits, grid.bits)) for grid in own)
        common = [_on(grid, bits) for grid in members]
        caps = [abs(w) * grid.cap for w, grid in zip(weights, common, strict=True)]
        cap = sum(
            max(sum(caps[i] for i in part) for part in group) for group in self._groups(dataset)
        )
        largest = sum(abs(w) * grid.largest for w, grid in zip(weights, common, strict=True))
        horizon = max(grid.horizon for grid in own)
        return Weighting(weights, scale, members, Grid(bits, cap, horizon, largest))

    def _groups(self, dataset: Dataset) -> list[list[list[int]]]:
        """The indices of the terms, by group and by part. One record changes one part of a group at
        most. A term whose utility names no group is a group of its own."""
        groups: dict[object, dict[str, list[int]]] = {}
        for i, (member, _) in enumerate(self._terms):
            exclusive = member.exclusive(dataset) if isinstance(member, ExclusiveUtility) else None
            group, part = exclusive or (i, "")
            groups.setdefault(group, {}).setdefault(part, []).append(i)
        return [list(parts.values()) for parts in groups.values()]


def _merged(terms: Sequence[Term]) -> list[tuple[Objective, Fraction]]:
    """One term per member, with the sum of its weights; none of weight 0."""
    merged: list[tuple[Objective, Fraction]] = []
    for term in terms:
        weight = exact_weight(term.weight)
        for i, (member, before) in enumerate(merged):
            if member == term.member:
                merged[i] = member, before + weight
                break
        else:
            merged.append((term.member, weight))
    return [(member, weight) for member, weight in merged if weight]


@lru_cache(maxsize=256)
def _finest_fit(
    own: tuple[Grid, ...], requested: tuple[Fraction, ...], sensitivity: Sensitivity
) -> tuple[int, tuple[int, ...]] | None:
    """The bits of a grid and the whole weights: among those that fit, the pair whose coarser part
    is finest. Public, and needed several times in each query."""
    fitting = [
        ((min(fineness, bits), fineness, bits), weights)
        for fineness, weights in whole_weights(requested)
        if (bits := _finest_bits(own, weights, sensitivity)) is not None
    ]
    if not fitting:
        return None
    (_, _, bits), weights = max(fitting, key=lambda pair: pair[0])
    return bits, weights


def _finest_bits(
    own: Sequence[Grid], weights: Sequence[int], sensitivity: Sensitivity
) -> int | None:
    """The most bits of a grid on which all sums stay below 2⁶²; at most those of any member."""
    finest = max(grid.bits for grid in own)
    horizon = max(grid.horizon for grid in own) if sensitivity is Sensitivity.SHIFTED else 1
    for bits in range(finest, min(finest, 1) - 1, -1):
        common = [_on(grid, bits) for grid in own]
        largest = sum(abs(w) * grid.largest for w, grid in zip(weights, common, strict=True))
        cap = sum(abs(w) * grid.cap for w, grid in zip(weights, common, strict=True))
        if max(largest, cap * horizon) < LIMIT:
            return bits
    return None


def _on(grid: Grid, bits: int) -> Grid:
    """The same bounds on a grid of ``bits``: exact on a finer grid, rounded up on a coarser one."""
    finer = bits - grid.bits
    if finer <= 0:
        return grid.coarser(bits)
    return replace(grid, bits=bits, cap=grid.cap << finer, largest=grid.largest << finer)
