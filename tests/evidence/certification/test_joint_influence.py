"""The joint influence of every utility and objective, against every pair of neighbours.

Let c be the change of all scores between two neighbours. For every k the sum of the k largest c
less the sum of the k smallest stays within the declared spread. Σ|c| and Σc² stay within the
declared norms, and signs agree where one-way is declared.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from _pytest.mark import ParameterSet

from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.joint_influence import (
    EdgeInfluence,
    Exchange,
    Few,
    Independent,
    JointInfluence,
    Together,
)
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import Objective
from mechanisms.selection.dampening import scores
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.edge_influence import common_neighbours
from mechanisms.utilities.egocentric_betweenness import EgocentricBetweenness
from mechanisms.utilities.gini import Gini
from mechanisms.utilities.information_gain import InformationGain
from mechanisms.utilities.max import Max
from mechanisms.utilities.utility import Grid
from tests.evidence.certification import graphs
from tests.evidence.certification.checks import Array
from tests.evidence.certification.family import Size, Universe
from tests.evidence.certification.objectives import measurements, objectives_of, weighted
from tests.evidence.certification.universes import (
    FAMILIES,
    public_grid,
    tabulate_scores,
    universe_of,
)

EDGE = NeighbouringRelation.EDGE
ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
DEGREE, DENSITY = UTILITIES["degree"], UTILITIES["egocentric_density"]
#: The numbers of fractional bits of scores: 0 for whole units, 20 for a fine grid.
SCORE_BITS = (0, 20)


def universes(fast: dict[str, list[Size]]) -> list[ParameterSet]:
    """Every universe of every family and ``LARGEST``; those not named in ``fast`` are slow."""
    return [
        pytest.param(
            kind,
            relation,
            size,
            id=f"{kind}-{relation}-{'-'.join(map(str, size))}",
            marks=[] if size in fast[kind] else [pytest.mark.slow],
        )
        for (kind, relation), family in FAMILIES.items()
        for size in [*family.sizes, *family.larger, *family.slow, *LARGEST.get(kind, [])]
    ]


#: All tables of up to six records with two attributes as candidates and a class, of two levels
#: each.
LARGEST: dict[str, list[Size]] = {"attributes": [(6, 2, 2, 2)]}
FAST: dict[str, list[Size]] = {
    "nodes": [(2, 1), (3, 2), (4, 2), (4, 3), (5, 2)],
    "attributes": [(1, 2, 2, 2), (2, 2, 1, 2), (2, 3, 2, 2), (2, 2, 1, 3)],
    "values": [(1, 2, 1, 1), (4, 2, 1, 1), (4, 3, 1, 1)],
    "trees": [(1, 2, 1, 2), (2, 2, 1, 2), (4, 2, 1, 2)],
}
FAST_TOGETHER: dict[str, list[Size]] = {
    "nodes": [(3, 2), (4, 3)],
    "attributes": [(2, 2, 1, 2)],
    "values": [(4, 3, 1, 1)],
    "trees": [(2, 2, 1, 2)],
}


def changes(scores: Array, pairs: Array) -> Array:
    """The change c of all scores, for every pair of neighbours in both directions."""
    forward = np.unique(scores[pairs[:, 1]] - scores[pairs[:, 0]], axis=0)
    return np.concatenate([forward, -forward])


def largest_spreads(moved: Array) -> Array:
    """For k = 1 … n, the most that the k largest c exceed the k smallest, shape (n,)."""
    ordered = np.sort(moved, axis=1)
    spreads = ordered[:, ::-1].cumsum(axis=1) - ordered.cumsum(axis=1)
    most: Array = spreads.max(axis=0, initial=0)
    return most


def breaches(moved: Array, influence: JointInfluence) -> list[str]:
    """The names of the declared bounds that some change exceeds."""
    declared = [influence.spread_of(k) for k in range(1, influence.count + 1)]
    both = (moved > 0).any(axis=1) & (moved < 0).any(axis=1)
    failed = {
        "one": np.abs(moved).max(initial=0) > influence.one,
        "spread": (largest_spreads(moved) > np.array(declared)).any(),
        "total": np.abs(moved).sum(axis=1).max(initial=0) > influence.total,
        "squares": (moved.astype(object) ** 2).sum(axis=1).max(initial=0) > influence.squares,
        "one way": influence.one_way and both.any(),
    }
    return [name for name, fails in failed.items() if fails]


def declared(
    objective: Objective, universe: Universe, mode: Sensitivity, grid: Grid, bits: int
) -> JointInfluence:
    return objective.joint_influence(universe.dataset, universe.candidates, mode, grid, bits)


@pytest.mark.parametrize("kind, relation, size", universes(FAST))
def test_utilities_move_together_as_declared(
    kind: str, relation: NeighbouringRelation, size: Size
) -> None:
    universe = FAMILIES[kind, relation].build(*size)
    for name, utility in UTILITIES.items():
        if utility.candidates != kind:
            continue
        for mode, (grid_bits, bits) in product(Sensitivity, ((None, 20), (2, 3))):
            grid = public_grid(name, universe, mode, grid_bits)
            direction = utility.direction
            rows = tabulate_scores(name, relation, size, mode, bits, direction, grid_bits)
            influence = declared(utility, universe, mode, grid, bits)
            assert influence.count == universe.candidates.count(universe.dataset)
            assert breaches(changes(rows, universe.pairs), influence) == [], (name, mode)


@pytest.mark.parametrize("kind, relation, size", universes(FAST_TOGETHER))
@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_objectives_move_together_as_declared(
    kind: str, relation: NeighbouringRelation, size: Size, sensitivity: Sensitivity
) -> None:
    universe = FAMILIES[kind, relation].build(*size)
    objectives = dict(objectives_of(kind, passes=4))
    if kind == "attributes":
        objectives["agreeing"] = weighted((InformationGain(), 1), (Gini(), 3), (Max(), "-0.5"))
        objectives["falling"] = weighted((Max(), 2), (Gini(), "-1.5"))
    for objective in objectives.values():
        readings = measurements(objective, universe, sensitivity)
        for score_bits in SCORE_BITS:
            influence = declared(objective, universe, sensitivity, readings.grid, score_bits)
            moved = changes(readings.scores(score_bits), universe.pairs)
            assert breaches(moved, influence) == [], score_bits


def test_an_edge_moves_its_ends_and_their_common_neighbours_alone() -> None:
    """Degree-form betweenness on all graphs of four nodes: ends by one, inner nodes by η, all
    others stay. The bounds for ends and for inner nodes are checked apart."""
    utility = EgocentricBetweenness()
    for bound, mode, bits in product((2, 3), (Sensitivity.GLOBAL, Sensitivity.SHIFTED), SCORE_BITS):
        size = (4, bound)
        universe = universe_of(utility.name, EDGE, size)
        rows = tabulate_scores(utility.name, EDGE, size, mode, bits, 1)
        grid = public_grid(utility.name, universe, mode, None)
        influence = declared(utility, universe, mode, grid, bits)
        assert isinstance(influence, EdgeInfluence)
        for x, y in universe.pairs:
            before, after = universe.members[x], universe.members[y]
            (ends,) = set(graphs.edges_of(after)) ^ set(graphs.edges_of(before))
            # The second graph of a pair is the first one with one more edge. So the scores of nodes
            # that are not its ends can only fall.
            moved = rows[y] - rows[x]
            for node in set(range(4)) - set(ends):
                inner = all(after[node] >> end & 1 for end in ends)
                assert -influence.fall * inner <= moved[node] <= 0
            assert np.abs(moved[list(ends)]).max() <= influence.one


@pytest.mark.parametrize(("bound", "bits"), [(2, 3), (3, 0), (3, 1), (3, 2), (3, 20)])
def test_one_step_less_than_the_ceiling_of_an_inner_node_is_refused(bound: int, bits: int) -> None:
    """η = ⌈2^q·D·2^(g−1)/Δ⌉ is attained on all graphs of four nodes: its floor would not do.

    At q = 0 and 1, D = 3, the fraction is 0.75 and 1.5, and a node falls by 1 and 2 steps.
    """
    size, name = (4, bound), EgocentricBetweenness.name
    universe = universe_of(name, EDGE, size)
    for mode in (Sensitivity.GLOBAL, Sensitivity.SHIFTED):
        rows = tabulate_scores(name, EDGE, size, mode, bits, 1)
        grid = public_grid(name, universe, mode, None)
        influence = declared(UTILITIES[name], universe, mode, grid, bits)
        assert isinstance(influence, EdgeInfluence)
        assert largest_inner_fall(universe, rows) == influence.fall


def largest_inner_fall(universe: Universe, rows: Array) -> int:
    """The most that an added edge lowers a node other than its ends."""
    most = 0
    for x, y in universe.pairs:
        (ends,) = set(graphs.edges_of(universe.members[y])) ^ set(
            graphs.edges_of(universe.members[x])
        )
        others = [node for node in range(rows.shape[1]) if node not in ends]
        most = max(most, int((rows[x] - rows[y])[others].max(initial=0)))
    return most


@pytest.mark.parametrize(
    "size",
    [
        (4, 2),
        (4, 3),
        pytest.param((5, 3), marks=pytest.mark.slow),
        pytest.param((5, 4), marks=pytest.mark.slow),
    ],
)
def test_clipped_sums_move_together_as_declared(size: Size) -> None:
    """degree + w·density clipped at C units: hubs alone rise, by their own bound."""
    universe, rose = FAMILIES["nodes", EDGE].build(*size), 0
    for weight, bits in product(("0.01", "0.3", "1"), (0, 3, 20)):
        objective = weighted((DEGREE, 1), (DENSITY, weight))
        readings = measurements(objective, universe, Sensitivity.LOCAL)
        hubs = objective.clipped(universe.dataset, universe.candidates, readings.grid)
        assert hubs is not None
        unclipped, inner = readings.scores(bits), common_neighbours(universe.dataset)
        for clip in (1, 2, 3):
            rise = hubs.rise(clip, bits)
            influence = EdgeInfluence(size[0], 1 << bits, inner, 0, rise)
            moved = changes(np.maximum(unclipped, clip << bits), universe.pairs)
            assert breaches(moved, influence) == [], (weight, bits, clip)
            rose = max(rose, largest_inner_rise(universe, unclipped, clip << bits) - rise)
    assert rose == 0


def largest_inner_rise(universe: Universe, unclipped: Array, floor: int) -> int:
    """The most that an added edge raises a node other than its ends; no such node falls."""
    clipped, most = np.maximum(unclipped, floor), 0
    for x, y in universe.pairs:
        (ends,) = set(graphs.edges_of(universe.members[y])) ^ set(
            graphs.edges_of(universe.members[x])
        )
        others = [node for node in range(clipped.shape[1]) if node not in ends]
        moved = (clipped[y] - clipped[x])[others]
        assert moved.min(initial=0) >= 0
        most = max(most, int(moved.max(initial=0)))
    return most


def test_a_clipped_sum_without_the_rise_of_its_hubs_is_refused() -> None:
    """Two inner nodes rise by half a unit each, and both ends by one: the judge has teeth."""
    dataset, objective = graphs.dataset_of(7, 4), weighted((DEGREE, 1), (DENSITY, 1))
    grid = objective.grid(dataset, AllNodes(), Sensitivity.LOCAL)
    hubs = objective.clipped(dataset, AllNodes(), grid)
    assert hubs is not None
    edges = [(1, 3), (1, 5), (3, 6), (5, 6)]
    before, after = (
        scores(
            objective.measure(
                graphs.records_of(graphs.graph_of(7, drawn)),
                dataset,
                AllNodes(),
                Sensitivity.LOCAL,
                grid,
            ),
            grid,
            Sensitivity.LOCAL,
            20,
            1,
        )
        for drawn in (edges, [*edges, (3, 5)])
    )
    one, inner = 1 << 20, common_neighbours(dataset)
    moved = np.maximum(after, one) - np.maximum(before, one)
    both = np.stack([moved, -moved])
    assert largest_spreads(both)[2] > 2.49 * one
    assert "spread" in breaches(both, EdgeInfluence(7, one, inner, 0, 0))
    assert breaches(both, EdgeInfluence(7, one, inner, 0, hubs.rise(1, 20))) == []


@pytest.mark.parametrize("score_bits", [0, 3])
def test_the_bounds_are_attained_where_the_table_is_tight(score_bits: int) -> None:
    """One step less than the declared spread is refused: the judge has teeth."""
    one = 1 << score_bits
    for name, relation, size in [
        ("degree", EDGE, (4, 3)),
        ("count", ADD_REMOVE, (4, 3, 1, 1)),
        ("count", REPLACE, (4, 3, 1, 1)),
        ("max", ADD_REMOVE, (2, 3, 2, 2)),
    ]:
        universe = universe_of(name, relation, size)
        grid = public_grid(name, universe, Sensitivity.GLOBAL, None)
        rows = tabulate_scores(name, relation, size, Sensitivity.GLOBAL, score_bits, 1)
        influence = declared(UTILITIES[name], universe, Sensitivity.GLOBAL, grid, score_bits)
        spreads = largest_spreads(changes(rows, universe.pairs)).tolist()
        assert spreads == [influence.spread_of(k) for k in range(1, influence.count + 1)], name
        moved = changes(rows, universe.pairs)
        assert breaches(moved, Together(influence.count, one - 1, moving=influence.count))


def test_a_ring_moves_all_core_numbers() -> None:
    """The spread of all candidates is attained: none of them less would do."""
    universe = universe_of("core_number", EDGE, (4, 3))
    rows = tabulate_scores("core_number", EDGE, (4, 3), Sensitivity.GLOBAL, 0, 1)
    moved = changes(rows, universe.pairs)
    assert breaches(moved, Independent(4, 1, both_ways=False)) == []
    assert "total" in breaches(moved, Few(4, 1, moving=3))


def test_an_edge_moves_the_h_index_of_few_nodes() -> None:
    """With degrees of at most 2 an edge of five nodes moves four: 2D, attained."""
    universe = universe_of("h_index", EDGE, (5, 2))
    rows = tabulate_scores("h_index", EDGE, (5, 2), Sensitivity.GLOBAL, 0, 1)
    moved = changes(rows, universe.pairs)
    assert breaches(moved, Few(5, 1, moving=4)) == []
    assert "total" in breaches(moved, Few(5, 1, moving=3))


def test_one_degree_at_a_time_is_refused() -> None:
    """An edge moves two degrees: the spread and the norms of one do not suffice."""
    rows = tabulate_scores("degree", EDGE, (4, 3), Sensitivity.GLOBAL, 0, 1)
    moved = changes(rows, universe_of("degree", EDGE, (4, 3)).pairs)
    assert breaches(moved, Together(4, 1, moving=2)) == []
    assert breaches(moved, Together(4, 1, moving=1)) == ["spread", "total", "squares"]


def test_one_count_at_a_time_is_refused_under_replace() -> None:
    """A replacement moves two counts in opposite directions."""
    rows = tabulate_scores("count", REPLACE, (4, 3, 1, 1), Sensitivity.GLOBAL, 0, 1)
    moved = changes(rows, universe_of("count", REPLACE, (4, 3, 1, 1)).pairs)
    assert breaches(moved, Exchange(3, 1)) == []
    assert breaches(moved, Together(3, 1, moving=1)) == ["spread", "total", "squares", "one way"]


@pytest.mark.parametrize("name", ["information_gain", "mutual_information", "gini"])
@pytest.mark.parametrize(
    ("relation", "size", "mode"),
    [
        (ADD_REMOVE, (4, 2, 2, 2), Sensitivity.LOCAL),
        (ADD_REMOVE, (4, 2, 2, 2), Sensitivity.SHIFTED),
        (REPLACE, (4, 2, 2, 2), Sensitivity.GLOBAL),
    ],
)
def test_one_way_is_refused_where_both_signs_occur(
    name: str, relation: NeighbouringRelation, size: Size, mode: Sensitivity
) -> None:
    universe = universe_of(name, relation, size)
    moved = changes(tabulate_scores(name, relation, size, mode, 3, 1), universe.pairs)
    assert breaches(moved, Independent(2, 8)) == []
    assert "one way" in breaches(moved, Independent(2, 8, both_ways=False))


def test_vectors_of_the_table() -> None:
    def spreads(influence: JointInfluence) -> list[int]:
        return [influence.spread_of(k) for k in range(1, influence.count + 1)]

    assert spreads(Together(2, 1, moving=2)) == [0, 0]
    assert spreads(Together(3, 1, moving=2)) == [1, 1, 0]
    assert spreads(Together(4, 1, moving=2)) == [1, 2, 1, 0]
    assert spreads(Together(4, 1, moving=1)) == [1, 1, 1, 0]
    assert spreads(Exchange(4, 1)) == [2, 2, 2, 0]
    assert spreads(Few(5, 2, moving=1)) == [2, 2, 2, 2, 0]
    assert spreads(Few(6, 1, moving=2)) == [1, 2, 2, 2, 1, 0]
    dataset = graphs.dataset_of(9, 6)
    utility, grid = EgocentricBetweenness(), Grid(bits=4, cap=80, horizon=6, largest=15 << 4)
    influence = utility.joint_influence(
        dataset, FAMILIES["nodes", EDGE].build(3, 2).candidates, Sensitivity.SHIFTED, grid, 6
    )
    assert isinstance(influence, EdgeInfluence)
    assert (influence.fall, influence.rise) == (39, 0)
    # The spread of three scores is the sum of the three largest changes less that of the three
    # smallest. It is at most 2·64 + 3·39, because an edge moves the scores of its ends by up to 64
    # and others by up to 39. The smaller bound 2·64 + (3 − 2)·39 is not proved.
    assert influence.spread_of(3) == 245
    assert influence.spread_of(7) == 206
    assert influence.total == 323


@pytest.mark.parametrize("k", [0, 5])
def test_a_spread_is_of_k_candidates_out_of_all(k: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 4"):
        Independent(4, 1).spread_of(k)
