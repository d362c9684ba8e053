"""What every registered utility promises, checked on every dataset of small universes.

A utility joins by being registered. It needs its definition in ``DEFINITIONS`` and a family of
universes for each relation in ``FAMILIES``: without them nothing here can be collected.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.choice import order_preserving
from mechanisms.selection.dampening import dampened_scores, global_scores, score_bound
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.covering import ConstantSensitivity
from tests.evidence.certification import checks
from tests.evidence.certification.universes import (
    DEFINITIONS,
    FAMILIES,
    ROUNDED,
    Size,
    public_grid,
    tabulate,
    tabulate_scores,
    universe_of,
)

SIZES = [
    pytest.param(name, relation, size, id=f"{name}-{relation}-{'-'.join(map(str, size))}", marks=m)
    for name, utility in UTILITIES.items()
    for relation in sorted(utility.relations)
    for sizes, m in (
        (FAMILIES[utility.candidates, relation].sizes, ()),
        (FAMILIES[utility.candidates, relation].larger, (pytest.mark.slow,)),
        (FAMILIES[utility.candidates, relation].slow, (pytest.mark.slow,)),
    )
    for size in sizes
]
every_universe = pytest.mark.parametrize("name, relation, size", SIZES)
#: The numbers of fractional bits to which utilities are rounded. None stands for the number that
#: queries use; few bits have the largest rounding errors.
GRIDS = (None, 1, 2, 3)


def test_every_registered_utility_is_certified() -> None:
    assert set(DEFINITIONS) == set(UTILITIES)
    for name, utility in UTILITIES.items():
        assert utility.name == name
        assert utility.relations
        for relation in utility.relations:
            assert (utility.candidates, relation) in FAMILIES


@every_universe
def test_utilities_follow_their_definition(
    name: str, relation: NeighbouringRelation, size: Size
) -> None:
    universe = universe_of(name, relation, size)
    grid = public_grid(name, universe, Sensitivity.GLOBAL, None)
    candidates = range(universe.candidates.count(universe.dataset))
    measured = tabulate(name, relation, size, Sensitivity.GLOBAL).utilities
    for utilities, member in zip(measured.tolist(), universe.members, strict=True):
        exact = [DEFINITIONS[name](member, r) * 2**grid.bits for r in candidates]
        if name in ROUNDED:
            steps, slack = ROUNDED[name]
            assert utilities == [steps(member, r, grid.bits) for r in candidates]
            most = slack(universe.dataset)
            assert all(abs(u - e) <= most for u, e in zip(utilities, exact, strict=True))
        else:
            assert utilities == [e // 1 for e in exact]


@every_universe
def test_delta_is_admissible(name: str, relation: NeighbouringRelation, size: Size) -> None:
    pairs = universe_of(name, relation, size).pairs
    for sensitivity, bits in product(Sensitivity, GRIDS):
        table, case = tabulate(name, relation, size, sensitivity, bits), (sensitivity, bits)
        assert checks.admissibility_breach(table.utilities, table.delta, pairs) is None, case
        assert checks.shape_breach(table.delta, table.cap, table.horizon) is None, case


@every_universe
def test_the_cap_is_attained_and_bounds_hold(
    name: str, relation: NeighbouringRelation, size: Size
) -> None:
    universe = universe_of(name, relation, size)
    for sensitivity in Sensitivity:
        table = tabulate(name, relation, size, sensitivity)
        grid = public_grid(name, universe, sensitivity, None)
        attained = checks.largest_change(table.utilities, universe.pairs)
        # If no change can move a utility, the cap (the public bound on such a move) is one step and
        # is not attained.
        assert attained == table.cap or (attained == 0 and table.cap == 1), sensitivity
        assert np.abs(table.utilities).max() <= grid.largest, sensitivity


@every_universe
def test_the_shortfall_is_the_sum_up_to_the_horizon(
    name: str, relation: NeighbouringRelation, size: Size
) -> None:
    for sensitivity, bits in product(set(Sensitivity) - {Sensitivity.FLATTENED}, GRIDS):
        table = tabulate(name, relation, size, sensitivity, bits)
        missing = (table.cap - table.delta[:, : table.horizon]).sum(axis=1)
        assert (table.shortfall == missing).all(), (sensitivity, bits)


@every_universe
def test_scores_of_neighbours_differ_by_one_unit_at_most(
    name: str, relation: NeighbouringRelation, size: Size
) -> None:
    universe = universe_of(name, relation, size)
    for sensitivity, score_bits in product(Sensitivity, (0, 1, 2, 20)):
        grid = public_grid(name, universe, sensitivity, None)
        for direction in (1, -1) if sensitivity is Sensitivity.SHIFTED else (1,):
            case = sensitivity, score_bits, direction
            score_rows = tabulate_scores(name, relation, size, *case)
            assert checks.largest_change(score_rows, universe.pairs) <= 1 << score_bits, case
            assert np.abs(score_rows).max() <= score_bound(grid, score_bits), case


def inversions(
    name: str, relation: NeighbouringRelation, size: Size, sensitivity: Sensitivity
) -> int:
    """How often a candidate of higher utility has the lower score, on all datasets together."""
    utilities = tabulate(name, relation, size, sensitivity).utilities
    direction = UTILITIES[name].direction
    score_rows = tabulate_scores(name, relation, size, sensitivity, 20, direction)
    better = utilities[:, :, None] > utilities[:, None, :]
    return int((better & (score_rows[:, :, None] < score_rows[:, None, :])).sum())


@every_universe
def test_scores_keep_the_order_of_utilities_where_quotes_say_so(
    name: str, relation: NeighbouringRelation, size: Size
) -> None:
    for sensitivity in Sensitivity:
        grid = public_grid(name, universe_of(name, relation, size), sensitivity, None)
        if order_preserving(sensitivity, grid):
            assert inversions(name, relation, size, sensitivity) == 0, sensitivity


def test_shifted_rates_may_turn_the_order_round() -> None:
    """Two tables of up to four records suffice, so quotes must not promise the order."""
    relation, size, shifted = NeighbouringRelation.ADD_REMOVE, (4, 2, 1, 2), Sensitivity.SHIFTED
    for name in ("true_positive_rate", "true_negative_rate"):
        assert inversions(name, relation, size, shifted) == 2
        grid = public_grid(name, universe_of(name, relation, size), shifted, None)
        assert not order_preserving(shifted, grid)


@every_universe
def test_coarse_grids_keep_scores_within_one_unit(
    name: str, relation: NeighbouringRelation, size: Size
) -> None:
    pairs = universe_of(name, relation, size).pairs
    for sensitivity, bits in product(Sensitivity, GRIDS):
        score_rows = tabulate_scores(name, relation, size, sensitivity, 4, 1, bits)
        assert checks.largest_change(score_rows, pairs) <= 1 << 4, (sensitivity, bits)


@every_universe
def test_local_with_the_constant_cap_is_global(
    name: str, relation: NeighbouringRelation, size: Size
) -> None:
    table = tabulate(name, relation, size, Sensitivity.GLOBAL)
    for utilities in np.unique(table.utilities, axis=0):
        constant = ConstantSensitivity(table.cap, utilities.size, table.horizon)
        expected = global_scores(utilities, table.cap, 20)
        assert (dampened_scores(utilities, constant, 20) == expected).all()
