"""Clipped sums of degree and density: the least degree that counts, and how far it moves."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.joint_influence import EdgeInfluence
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import Objective, Term, WeightedSum
from mechanisms.objectives.hubs import Hubs
from mechanisms.selection.top_k import clipped_scores
from mechanisms.utilities import UTILITIES

NODES = AllNodes()
WEIGHTS = {"degree": "1", "egocentric_density": "100"}


def graph(max_degree: int, nodes: int = 37_700) -> Dataset:
    return Dataset("g", NeighbouringRelation.EDGE, GraphDomain(nodes, max_degree))


def sum_of(weights: dict[str, str]) -> WeightedSum:
    return WeightedSum([Term(UTILITIES[name], Decimal(w)) for name, w in weights.items()])


def hubs(objective: Objective, dataset: Dataset) -> Hubs | None:
    grid = objective.grid(dataset, NODES, Sensitivity.LOCAL)
    public = clipped_scores(objective, dataset, NODES, grid)
    assert public is None or isinstance(public, Hubs)
    return public


@pytest.mark.parametrize("max_degree", [500, 10_000])
def test_vectors_of_clips(max_degree: int) -> None:
    """The least degrees and rises for degree + 100·density; real value 2w/((d − 1)(d + 2w))."""
    public = hubs(sum_of(WEIGHTS), graph(max_degree))
    assert public is not None
    for clip, least in ((50, 97), (100, 173), (150, 243), (300, 435)):
        assert public.least_degree(clip) == least
        real = Fraction(200, (least - 1) * (least + 200))
        step = Fraction(1, 1 << 20)
        assert real <= public.rise(clip, 20) * step <= real + 2 * step


def test_bounds_on_the_rise_hold_for_every_degree() -> None:
    """Against ⌈A·⌈2^{g+1}/(d(d − 1))⌉·2^q/δ(0, d)⌉ for each degree from the least one on."""
    for bits, weight in ((3, 5), (10, 1), (20, 700)):
        public = Hubs(degree=1 << bits, density=weight, bits=bits, max_degree=300)
        for clip in (1, 4, 32):
            least = public.least_degree(clip)
            assert least is not None
            for degree in range(least, 301):
                pairs = weight * -(-(2 << bits) // (degree * (degree - 1)))
                first = (1 << bits) + weight * -(-(2 << bits) // degree)
                change = min(1 << 12, -(-(pairs << 12) // first))
                assert change <= public.rise(clip, 12)


def test_a_clip_beyond_most_degrees_is_none() -> None:
    dataset = graph(100)
    public = hubs(sum_of(WEIGHTS), dataset)
    assert public is not None
    assert public.least_degree(64) is None
    assert public.rise(64, 20) == 0
    assert public.influence(dataset, 64, 20) is None
    # Most degrees up to the bound of 100 are too low for any score above a clip of 30.
    assert public.influence(dataset, 30, 20) is None
    assert isinstance(public.influence(dataset, 16, 20), EdgeInfluence)


@pytest.mark.parametrize(
    "weights",
    [
        {"degree": "1"},
        {"degree": "1", "egocentric_density": "-100"},
        {"degree": "-1", "egocentric_density": "100"},
        {"degree": "1", "egocentric_density": "1", "egocentric_betweenness": "1"},
    ],
)
def test_other_sums_have_no_clipped_scores(weights: dict[str, str]) -> None:
    assert hubs(sum_of(weights), graph(500)) is None
    assert hubs(UTILITIES["degree"], graph(500)) is None
    assert hubs(sum_of(WEIGHTS), graph(1)) is None
