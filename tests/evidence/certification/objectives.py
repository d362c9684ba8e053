"""The measurements of an objective on every dataset of a universe, as arrays for the checks."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import cycle

import numpy as np

from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import Objective, Pareto, Term, WeightedSum
from mechanisms.objectives.pareto import PASSES
from mechanisms.selection.dampening import score_bound, scores
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Grid, Measurement
from tests.evidence.certification import checks
from tests.evidence.certification.checks import Array
from tests.evidence.certification.family import Universe


@dataclass(frozen=True)
class Measurements:
    """One measurement per dataset, all on one public grid."""

    universe: Universe
    objective: Objective
    sensitivity: Sensitivity
    grid: Grid
    each: list[Measurement]

    def utilities(self) -> Array:
        return np.stack([measured.utilities for measured in self.each])

    def delta(self) -> Array:
        """δ, shape (datasets, t = 0 … T + 1, candidates); the flattened δ in that mode."""
        return np.stack([self._rows(measured) for measured in self.each])

    def _rows(self, measured: Measurement) -> Array:
        everyone = np.arange(measured.utilities.size)
        steps = range(self.grid.horizon + 2)
        rows = np.stack([measured.delta.at(t, everyone) for t in steps])
        largest = np.array([measured.delta.largest(t) for t in steps])
        # In the mode ``flattened`` all candidates have one common sensitivity function δ. For a
        # weighted sum it adds the largest δ of every member, so it may exceed the δ of every
        # candidate.
        assert (rows.max(axis=1) <= largest).all()
        assert isinstance(self.objective, WeightedSum) or (rows.max(axis=1) == largest).all()
        if self.sensitivity is Sensitivity.FLATTENED:
            return np.broadcast_to(largest[:, None], rows.shape)
        return rows

    def scores(self, score_bits: int) -> Array:
        return np.stack(
            [
                scores(measured, self.grid, self.sensitivity, score_bits, self.objective.direction)
                for measured in self.each
            ]
        )

    def without(self, place: int) -> Measurements:
        """The same for those who are left when this candidate has been drawn."""
        assert isinstance(self.objective, Pareto)
        remaining = [self.objective.without(measured, self.grid, place) for measured in self.each]
        (grid,) = {grid for _, grid in remaining}
        each = [measured for measured, _ in remaining]
        return Measurements(self.universe, self.objective, self.sensitivity, grid, each)


def measurements(
    objective: Objective, universe: Universe, sensitivity: Sensitivity
) -> Measurements:
    grid = objective.grid(universe.dataset, universe.candidates, sensitivity)
    each = [
        objective.measure(records, universe.dataset, universe.candidates, sensitivity, grid)
        for records in universe.records
    ]
    return Measurements(universe, objective, sensitivity, grid, each)


def certify(readings: Measurements) -> None:
    """Check every condition for privacy on one universe, with coarse and with fine scores."""
    pairs, grid = readings.universe.pairs, readings.grid
    utilities = readings.utilities()
    assert np.abs(utilities).max() <= grid.largest
    assert checks.largest_change(utilities, pairs) <= grid.cap
    if readings.sensitivity is not Sensitivity.GLOBAL:
        delta = readings.delta()
        assert checks.admissibility_breach(utilities, delta, pairs) is None
        assert checks.shape_breach(delta, grid.cap, grid.horizon) is None
        if readings.sensitivity is not Sensitivity.FLATTENED:
            short = np.stack([measured.delta.shortfall() for measured in readings.each])
            assert (short == (grid.cap - delta[:, : grid.horizon]).sum(axis=1)).all()
    for score_bits in (0, 2, 20):
        judged = readings.scores(score_bits)
        assert checks.largest_change(judged, pairs) <= 1 << score_bits
        assert np.abs(judged).max() <= score_bound(grid, score_bits)


def weighted(*terms: tuple[Objective, int | str]) -> WeightedSum:
    return WeightedSum([Term(member, Decimal(weight)) for member, weight in terms])


def pareto(*members: Objective, passes: int = PASSES) -> Pareto:
    return Pareto([Term(member) for member in members], passes)


def objectives_of(candidates: str, passes: int = PASSES) -> dict[str, Objective]:
    """Sums and Pareto scores of the registered utilities of one kind of candidates."""
    first, *others = [u for u in UTILITIES.values() if u.candidates == candidates]
    second = others[0] if others else weighted((first, -1))
    others_weighted = zip(others, cycle((-3, 7)), strict=False)
    return {
        "weighted_sum": weighted((first, 1), *others_weighted),
        "negative": weighted((first, "-0.7"), *((other, "1.9") for other in others[:1])),
        "steep": weighted((first, 1), *((other, 100) for other in others[:1])),
        "pareto": pareto(first, second, passes=passes),
        "pareto of a sum": pareto(
            weighted((first, 1), *((u, 2) for u in others[:1])), second, passes=passes
        ),
        "pareto of all": pareto(first, second, *others[1:], weighted((first, -1)), passes=passes),
    }
