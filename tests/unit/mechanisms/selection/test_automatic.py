"""What ``auto`` stands for: a public rule, the same for every dataset of one description."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.candidates import AllNodes, Candidates
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.joint_influence import EdgeInfluence, Exchange, Independent, Together
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf
from mechanisms.objectives import Objective, Pareto, Term, WeightedSum
from mechanisms.selection import Choice
from mechanisms.selection.automatic import (
    Request,
    automatic_clip,
    cheapest,
    intervals,
    resolved,
)
from mechanisms.selection.clipping import Clip
from mechanisms.selection.top_k import plan
from mechanisms.utilities import UTILITIES

GRAPH = Dataset("g", NeighbouringRelation.EDGE, GraphDomain(37_700, 10_000))
LEVELS = tuple(map(str, range(40)))
TABLE = Dataset(
    "t",
    NeighbouringRelation.ADD_REMOVE,
    TableDomain(tuple(CategoricalAttribute(name, LEVELS) for name in "ABCDE"), max_rows=10**5),
)
REPLACE = replace(
    TABLE,
    neighbouring=NeighbouringRelation.REPLACE,
    domain=replace(TABLE.domain, max_rows=None, rows=10**5),
)
ATTRIBUTES, VALUES = Attributes(("A", "B", "C", "D"), "E"), ValuesOf("A")
AUTO = Request("", 1, None, None, None)


def choice(
    name: str, k: int, epsilon: str, dataset: Dataset = GRAPH, candidates: Candidates | None = None
) -> Choice:
    objective: Objective = UTILITIES[name]
    request = replace(AUTO, ranking=name, k=k)
    loss = PrivacyLoss.parse(epsilon)
    return resolved(request, dataset, candidates or AllNodes(), objective, loss)


def test_degrees_and_counts_are_noisy_vectors_with_their_values() -> None:
    for k in (2, 100):
        for epsilon in ("0.001", "1000000"):
            assert choice("degree", k, epsilon) == Choice(Sensitivity.GLOBAL, "laplace")
    for table in (TABLE, REPLACE):
        assert choice("count", 10, "0.1", table, VALUES).selector == "laplace"
        assert choice("count", 1, "0.1", table, VALUES).selector == "permute_and_flip"


def test_betweenness_goes_from_degree_to_its_own_order() -> None:
    shifted, flattened = Sensitivity.SHIFTED, Sensitivity.FLATTENED
    assert choice("egocentric_betweenness", 10, "0.02") == Choice(shifted, "subset")
    assert choice("egocentric_betweenness", 10, "199.9").sensitivity is shifted
    assert choice("egocentric_betweenness", 10, "200").sensitivity is flattened
    one = [choice("egocentric_betweenness", 1, epsilon) for epsilon in ("0.9", "10", "1000000")]
    assert [each.sensitivity for each in one] == [shifted, Sensitivity.LOCAL, flattened]
    assert {each.selector for each in one} == {"permute_and_flip"}


@pytest.mark.parametrize("name", ["information_gain", "mutual_information", "gini", "max"])
def test_attributes_keep_the_order_of_their_utility(name: str) -> None:
    for table in (TABLE, REPLACE):
        for k in (1, 2):
            expected = Choice(Sensitivity.GLOBAL, "permute_and_flip")
            assert choice(name, k, "0.01", table, ATTRIBUTES) == expected
    # To select three of four attributes is to leave one out. Drawing them as a subset then costs
    # less than three draws.
    assert choice(name, 3, "0.01", REPLACE, ATTRIBUTES).selector == "subset"


def test_the_selector_follows_what_moves_together() -> None:
    one = 1 << 20
    assert cheapest(Together(100, one, moving=2), 1) == "permute_and_flip"
    assert cheapest(Together(100, one, moving=2), 2) == "laplace"
    assert cheapest(Exchange(100, one), 5) == "laplace"
    assert cheapest(Independent(100, one), 5) == "permute_and_flip"
    assert cheapest(Independent(100, one), 60) == "subset"
    assert cheapest(Independent(100, one, both_ways=False), 5) == "permute_and_flip"
    edge = EdgeInfluence(100, one, inner=98, fall=one // 10, rise=0)
    assert cheapest(edge, 2) == "subset"
    # Drawing 1,000 of 10⁷ candidates as a subset could take too many rounds for a public deadline,
    # so they are drawn one after another.
    assert cheapest(replace(edge, count=10**7), 1000) == "permute_and_flip"


def test_named_parts_are_kept() -> None:
    degree, loss = UTILITIES["degree"], PrivacyLoss.parse("1")
    base = replace(AUTO, ranking="degree", k=3)
    named = replace(base, sensitivity=Sensitivity.LOCAL, selector="subset")
    assert resolved(named, GRAPH, AllNodes(), degree, loss) == Choice(Sensitivity.LOCAL, "subset")
    drawn = resolved(replace(base, draws="one_shot"), GRAPH, AllNodes(), degree, loss)
    assert drawn == Choice(Sensitivity.GLOBAL, "permute_and_flip", "one_shot")
    for selector in ("subset", "laplace"):
        with pytest.raises(UnsupportedQuery, match="all candidates at once"):
            resolved(
                replace(base, selector=selector, draws="peeled"), GRAPH, AllNodes(), degree, loss
            )


def test_candidates_that_are_scored_anew_are_drawn_one_after_another() -> None:
    pareto = Pareto([Term(UTILITIES["degree"]), Term(UTILITIES["egocentric_density"])])
    request = replace(AUTO, ranking="pareto", k=3, rescore=True)
    chosen = resolved(request, GRAPH, AllNodes(), pareto, PrivacyLoss.parse("1"))
    assert chosen == Choice(Sensitivity.SHIFTED, "permute_and_flip", "peeled")
    # From ε = 10 per draw on, that is 30 for k = 3, dampened scores select undominated candidates
    # better.
    for epsilon, sensitivity in (("29.9", Sensitivity.SHIFTED), ("30", Sensitivity.LOCAL)):
        chosen = resolved(request, GRAPH, AllNodes(), pareto, PrivacyLoss.parse(epsilon))
        assert chosen.sensitivity is sensitivity


def dense_degree(weight: str = "100") -> Objective:
    terms = {"degree": "1", "egocentric_density": weight}
    return WeightedSum([Term(UTILITIES[name], Decimal(w)) for name, w in terms.items()])


def test_sums_of_degree_and_density_are_clipped_while_noise_hides_what_the_clip_does() -> None:
    request = replace(AUTO, ranking="weighted_sum of nodes", k=5)
    local = Sensitivity.LOCAL

    def chosen(epsilon: str, dataset: Dataset = GRAPH, **named: Any) -> Choice:
        loss = PrivacyLoss.parse(epsilon)
        return resolved(replace(request, **named), dataset, AllNodes(), dense_degree(), loss)

    clip = automatic_clip(request, GRAPH, AllNodes(), dense_degree(), local)
    # Scores are clipped at 64 for ε below 7·ln(37,695/5)/64. Without the clip, one change moves
    # five scores together by seven units, and 37,695 candidates are not among these five.
    assert clip == Clip(64, 976_483_027)
    for epsilon in ("0.001", "0.976483026"):
        assert chosen(epsilon) == Choice(local, "subset", clip=64)
    assert chosen("0.976483027") == Choice(local, "subset")
    # If the caller names the sensitivity, the selector or the order of draws, it is kept, and
    # scores are not clipped. With a low bound on degrees, too few degrees have scores above the
    # clip.
    assert chosen("0.1", sensitivity=local) == Choice(local, "subset")
    assert chosen("0.1", selector="subset") == Choice(local, "subset")
    assert chosen("0.1", draws="peeled") == Choice(local, "permute_and_flip", "peeled")
    assert chosen("0.1", k=1).clip == chosen("0.1", k=37_699).clip == 0
    assert chosen("0.1", k=2) == Choice(local, "subset", clip=32)
    small = replace(GRAPH, domain=GraphDomain(37_700, 100))
    assert chosen("0.1", small) == Choice(local, "subset")
    assert intervals("weighted_sum of nodes", 5, clip) == [
        (0, 976_483_027),
        (976_483_027, 250 * NANO),
        (250 * NANO, None),
    ]


def test_a_clip_is_not_for_other_sums() -> None:
    request = replace(AUTO, ranking="weighted_sum of nodes", k=5)
    for objective in (dense_degree("-100"), UTILITIES["degree"]):
        assert automatic_clip(request, GRAPH, AllNodes(), objective, Sensitivity.LOCAL) is None
    flattened = Sensitivity.FLATTENED
    assert automatic_clip(request, GRAPH, AllNodes(), dense_degree(), flattened) is None


def test_intervals_cover_every_epsilon_once() -> None:
    assert intervals("degree", 4) == [(0, None)]
    assert intervals("egocentric_betweenness", 3) == [(0, 60 * 10**9), (60 * 10**9, None)]


def test_hits_of_trees_are_one_way_alone_and_in_a_sum() -> None:
    """A record raises the hits of some trees and lowers none; their sum moves by one record."""
    leaves = tuple({"label": label} for label in ("0", "1"))
    trees = Trees(leaves, "A", "0")
    hits = [Term(UTILITIES[name], Decimal(1)) for name in ("true_positives", "true_negatives")]
    for objective in (UTILITIES["true_positives"], WeightedSum(hits)):
        for mode in Sensitivity:
            public = plan(TABLE, trees, objective, mode, 1)
            assert public.grid.cap == 1 << public.grid.bits
            assert public.influence.one_way
            assert not plan(REPLACE, trees, objective, mode, 1).influence.one_way
    assert plan(REPLACE, trees, WeightedSum(hits), Sensitivity.GLOBAL, 1).grid.cap == 2
    rates = [Term(UTILITIES[f"{name}_rate"], Decimal(1)) for name in ("true_positive",)]
    mixed = WeightedSum([*hits, *rates])
    assert not plan(TABLE, trees, mixed, Sensitivity.GLOBAL, 1).influence.one_way
    assert choice("true_positives", 1, "0.1", TABLE, trees).sensitivity is Sensitivity.GLOBAL
