"""Objectives of several utilities: δ, Δ, T and scores on every pair of neighbours.

First on made-up utilities with the smallest admissible δ, over paths, cycles and random graphs of
datasets; then on the registered utilities, over the universes in which they are certified. A new
utility joins by being registered, a new objective must be named here.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import OBJECTIVES, Objective, Pareto, Term, WeightedSum
from mechanisms.objectives.pareto import MOST_PASSES
from mechanisms.utilities import UTILITIES
from tests.evidence.certification import synthetic
from tests.evidence.certification.family import Size, Universe
from tests.evidence.certification.objectives import (
    Measurements,
    certify,
    measurements,
    objectives_of,
    pareto,
    weighted,
)
from tests.evidence.certification.synthetic import Synthetic
from tests.evidence.certification.universes import FAMILIES

every_sensitivity = pytest.mark.parametrize("sensitivity", list(Sensitivity))
few_seeds = pytest.param(range(3), id="seeds-0")
many_seeds = [
    pytest.param(range(k, k + 40), id=f"seeds-{k}", marks=pytest.mark.slow)
    for k in range(100, 260, 40)
]
every_seed = pytest.mark.parametrize("seeds", [few_seeds, *many_seeds])

SUMS = {
    "plus": (1, 1),
    "minus": (1, -1),
    "uneven": (2, -3),
    "rounded": ("0.3333", "-1e-9"),
    "three": (1, -2, 5),
    "one": (-4,),
}
#: For each name of an objective: how many utilities it has, and how they are combined.
SYNTHETIC = {
    "two": (2, lambda m: pareto(*m)),
    "three": (3, lambda m: pareto(*m)),
    "four": (4, lambda m: pareto(*m)),
    "of a sum": (3, lambda m: pareto(weighted((m[0], 2), (m[1], -3)), m[2])),
    "of two sums": (2, lambda m: pareto(weighted((m[0], 1), (m[1], 1)), weighted((m[0], -1)))),
    "of one twice": (1, lambda m: pareto(m[0], m[0])),
    "P = 1": (2, lambda m: Pareto([Term(u) for u in m], passes=1)),
    "P = 3": (2, lambda m: Pareto([Term(u) for u in m], passes=3)),
}


def test_every_registered_objective_is_certified() -> None:
    assert set(OBJECTIVES) == {"single", "weighted_sum", "pareto"}


def made_up(seed: int, members: int) -> tuple[Universe, list[Synthetic]]:
    """A universe of 2 to 7 datasets and 2 to 6 candidates, and utilities on it."""
    rng = Random(seed)
    size, candidates = rng.randint(2, 7), rng.randint(2, 6)
    shape = (synthetic.path, synthetic.cycle)[seed % 2]
    edges = synthetic.connected(size, rng) if seed % 3 == 2 or size < 3 else shape(size)
    utilities = [
        Synthetic(
            synthetic.random_values(size, candidates, rng.choice((1, 3, 9)), 0.15, rng), edges
        )
        for _ in range(members)
    ]
    return synthetic.universe(size, edges, candidates), utilities


@every_seed
@every_sensitivity
@pytest.mark.parametrize("weights", SUMS.values(), ids=SUMS)
def test_weighted_sums(weights: tuple[int, ...], sensitivity: Sensitivity, seeds: range) -> None:
    for seed in seeds:
        universe, utilities = made_up(seed, len(weights))
        objective = weighted(*zip(utilities, weights, strict=True))
        certify(measurements(objective, universe, sensitivity))


def exclusive(seed: int) -> tuple[Universe, list[Synthetic]]:
    """Utilities of which each change moves one only: a grid of datasets, one axis a utility."""
    rng = Random(seed)
    rows, columns, candidates = rng.randint(2, 3), rng.randint(2, 3), rng.randint(2, 4)
    number = {(i, j): i * columns + j for i in range(rows) for j in range(columns)}
    edges = tuple(
        sorted(
            (number[i, j], number[k, m])
            for i, j in number
            for k, m in ((i + 1, j), (i, j + 1))
            if (k, m) in number
        )
    )
    values = [synthetic.random_values(side, candidates, 5, 0.3, rng) for side in (rows, columns)]
    tables = [np.stack([table[cell[axis]] for cell in number]) for axis, table in enumerate(values)]
    utilities = [
        Synthetic(table, edges, part=("axes", str(axis))) for axis, table in enumerate(tables)
    ]
    return synthetic.universe(len(number), edges, candidates), utilities


@every_seed
@every_sensitivity
def test_of_utilities_that_never_move_together_the_largest_counts(
    sensitivity: Sensitivity, seeds: range
) -> None:
    smaller = 0
    for seed in seeds:
        universe, utilities = exclusive(seed)
        joint = measurements(weighted((utilities[0], 2), (utilities[1], -3)), universe, sensitivity)
        certify(joint)
        plain = [Synthetic(u.values, u.edges) for u in utilities]
        summed = measurements(weighted((plain[0], 2), (plain[1], -3)), universe, sensitivity)
        smaller += joint.grid.cap < summed.grid.cap
        # A utility that a weighted sum lists twice counts as one utility with the sum of the
        # weights.
        twice = weighted((utilities[0], 1), (utilities[1], -3), (utilities[0], 1))
        assert twice.grid(universe.dataset, universe.candidates, sensitivity) == joint.grid
    assert smaller == len(seeds)


def test_the_largest_is_refused_where_both_move() -> None:
    """Two utilities that one change does move, declared as if it did not: (A1) fails."""
    edges = synthetic.path(2)
    values = np.array([[0, 0], [1, 0]])
    liars = [Synthetic(values, edges, part=("group", name)) for name in "ab"]
    universe = synthetic.universe(2, edges, 2)
    with pytest.raises(AssertionError):
        certify(measurements(weighted((liars[0], 1), (liars[1], 1)), universe, Sensitivity.LOCAL))


def certify_with_every_rest(readings: Measurements) -> None:
    """The Pareto score of all candidates, and of those left after one and after two draws."""
    certify(readings)
    count = readings.each[0].utilities.size
    for place in {0, count - 1}:
        if count > 1:
            rest = readings.without(place)
            certify(rest)
            if count > 2:
                certify(rest.without(0))


@every_seed
@every_sensitivity
@pytest.mark.parametrize("name", SYNTHETIC)
def test_pareto_scores(name: str, sensitivity: Sensitivity, seeds: range) -> None:
    members, objective = SYNTHETIC[name]
    for seed in seeds:
        universe, utilities = made_up(1000 + seed, members)
        certify_with_every_rest(measurements(objective(utilities), universe, sensitivity))


#: The universes that are fast enough for every run; with all others, the test of each objective is
#: slow.
FAST: dict[str, list[Size]] = {
    "nodes": [(2, 1), (3, 2), (4, 3)],
    "attributes": [(1, 2, 2, 2), (2, 2, 1, 2)],
    "values": [(1, 2, 1, 1), (4, 3, 1, 1)],
    "trees": [(1, 2, 1, 2), (2, 2, 1, 2)],
}
REAL = [
    pytest.param(
        kind,
        relation,
        size,
        id=f"{kind}-{relation}-{'-'.join(map(str, size))}",
        marks=[] if size in FAST[kind] else [pytest.mark.slow],
    )
    for (kind, relation), family in FAMILIES.items()
    for size in [*family.sizes, *family.larger]
]


@pytest.mark.parametrize("kind, relation, size", REAL)
@every_sensitivity
def test_registered_utilities_together(
    kind: str, relation: NeighbouringRelation, size: Size, sensitivity: Sensitivity
) -> None:
    universe = FAMILIES[kind, relation].build(*size)
    for passes in (4, MOST_PASSES) if len(universe.members) < 20 else (4,):
        for objective in objectives_of(kind, passes).values():
            certify(measurements(objective, universe, sensitivity))


def test_every_registered_utility_takes_part() -> None:
    assert {u.candidates for u in UTILITIES.values()} == {kind for kind, _ in FAMILIES}
    parts: list[Objective] = [o for kind, _ in FAMILIES for o in objectives_of(kind).values()]
    assert any(isinstance(part, WeightedSum) for part in parts)
    assert any(isinstance(part, Pareto) for part in parts)
