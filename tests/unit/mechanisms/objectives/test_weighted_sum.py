"""Weighted sums: whole weights, the common grid, the direction of the shift, refusals."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels.long_division import LIMIT
from mechanisms.model.candidates import AllNodes
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.objectives import OBJECTIVES, Objective, Pareto, Term, WeightedSum
from mechanisms.objectives.weights import FINEST, exact_weight, whole_weights
from mechanisms.selection.dampening import score_bound, scores
from mechanisms.utilities import UTILITIES
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.evidence.certification.tables import ADD_REMOVE, REPLACE
from tests.evidence.certification.universes import FAMILIES

DEGREE, DENSITY, BETWEENNESS = (
    UTILITIES[name] for name in ("degree", "egocentric_density", "egocentric_betweenness")
)
KITE = graph_of(6, [(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 4), (4, 5)])


def weighted(*terms: tuple[Objective, str | None]) -> WeightedSum:
    return WeightedSum([Term(member, w and Decimal(w)) for member, w in terms])


@pytest.mark.parametrize(
    "weights, whole",
    [
        (["1", "100"], (1, 100)),
        (["0.5", "-0.25"], (2, -1)),
        (["-7"], (-1,)),
        (["1e12", "1e-12"], (1 << 20, 1)),
        (["-1e-12", "0.3", "1"], (-1, 314573, 1 << 20)),
        (["1048577", "1"], (1 << 20, 1)),
        (["1048576", "1"], (1 << 20, 1)),
    ],
)
def test_weights_become_whole_numbers(weights: list[str], whole: tuple[int, ...]) -> None:
    fineness, numbers = next(whole_weights([exact_weight(Decimal(w)) for w in weights]))
    assert (fineness, numbers) == (FINEST, whole)


@settings(deadline=None)
@given(st.lists(st.decimals("-1e6", "1e6", places=6).filter(bool), min_size=1, max_size=5))
def test_rounded_weights_are_the_nearest_and_never_zero(weights: list[Decimal]) -> None:
    exact = [exact_weight(weight) for weight in weights]
    largest = max(map(abs, exact))
    for fineness, numbers in whole_weights(exact):
        if max(map(abs, numbers)) != 1 << fineness:
            # These weights needed no rounding, so the whole numbers have exactly the ratios of the
            # weights.
            assert len({w / f for w, f in zip(exact, numbers, strict=True)}) == 1
            continue
        for w, f in zip(exact, numbers, strict=True):
            ideal = w * (1 << fineness) / largest
            assert abs(f - ideal) <= Fraction(1, 2) or (abs(f) == 1 and abs(ideal) < 1)
            assert (f > 0) == (w > 0)


@pytest.mark.parametrize("weight", ["NaN", "sNaN", "Infinity", "-Infinity", "1e308", "1e-308"])
def test_weights_out_of_range_are_refused(weight: str) -> None:
    with pytest.raises(UnsupportedQuery, match="a weight is 0 or lies between"):
        weighted((DEGREE, weight), (DENSITY, "1"))


@pytest.mark.parametrize(
    "terms, match",
    [
        ([], "one or more"),
        ([(DEGREE, "0"), (DENSITY, "-0")], "not all zero"),
        ([(DEGREE, "1"), (DEGREE, "-1")], "not all zero"),
        ([(weighted((DEGREE, "1")), "1"), (DENSITY, "1")], "are utilities"),
        ([(Pareto([Term(DEGREE), Term(DENSITY)]), "1")], "are utilities"),
        ([(DEGREE, "1"), (UTILITIES["count"], "1")], "same kind"),
    ],
)
def test_terms_that_do_not_fit_are_refused(terms: list[tuple[Objective, str]], match: str) -> None:
    with pytest.raises(UnsupportedQuery, match=match):
        OBJECTIVES["weighted_sum"]([Term(member, Decimal(weight)) for member, weight in terms])


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_the_sum_is_exact_on_the_common_grid(sensitivity: Sensitivity) -> None:
    """degree − 100·density: the integer utility is put on the fine grid without rounding."""
    dataset, records, everyone = dataset_of(6, 5), records_of(KITE), np.arange(6)
    objective = weighted((DEGREE, "1"), (DENSITY, "-100"))
    chosen = objective.weighing(dataset, AllNodes(), sensitivity)
    assert (chosen.weights, chosen.scale) == ((1, -100), 1)
    grid = objective.grid(dataset, AllNodes(), sensitivity)
    assert grid == chosen.grid
    assert (grid.bits, grid.horizon) == (32, 4)
    assert (grid.cap, grid.largest) == (101 << 32, 105 << 32)
    result = objective.measure(records, dataset, AllNodes(), sensitivity, grid)
    parts = []
    for member in (DEGREE, DENSITY):
        own = member.grid(dataset, AllNodes(), sensitivity)
        parts.append(member.measure(records, dataset, AllNodes(), sensitivity, own))
    degree, density = parts
    assert (result.utilities == (degree.utilities << 32) - 100 * density.utilities).all()
    for t in range(6):
        both = (degree.delta.at(t, everyone) << 32) + 100 * density.delta.at(t, everyone)
        expected = both if t < 4 else np.full(6, grid.cap)
        assert (result.delta.at(t, everyone) == expected).all()
        largest = (degree.delta.largest(t) << 32) + 100 * density.delta.largest(t)
        assert result.delta.largest(t) == (largest if t < 4 else grid.cap)
    assert result.delta.cap == grid.cap


def test_without_weights_all_count_alike_and_terms_of_one_utility_are_one() -> None:
    dataset = dataset_of(6, 5)
    plain = weighted((DEGREE, None), (DENSITY, None))
    split = weighted((DEGREE, "0.25"), (DENSITY, "1"), (DEGREE, "0.75"))
    for sensitivity in Sensitivity:
        left, right = (o.weighing(dataset, AllNodes(), sensitivity) for o in (plain, split))
        assert left == right
        assert left.weights == (1, 1)


def test_at_degree_1000_an_edge_still_moves_the_degree_by_one() -> None:
    """degree + 100·density: δ(0) = 1 + 100·2/1000."""
    dataset, objective = dataset_of(1002, 1001), weighted((DEGREE, "1"), (DENSITY, "100"))
    grid = objective.grid(dataset, AllNodes(), Sensitivity.LOCAL)
    degree = np.full(1002, 1000, dtype=np.int32)
    columns = {"degree": degree, "inner_edges": np.zeros(1002, dtype=np.int64)}
    records = replace(records_of(KITE), columns=columns)
    result = objective.measure(records, dataset, AllNodes(), Sensitivity.LOCAL, grid)
    density = -(-(2 << grid.bits) // 1000)
    assert result.delta.largest(0) == (1 << grid.bits) + 100 * density


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
@pytest.mark.parametrize("bound", [1, 343, 9_458, 317_079])
@pytest.mark.parametrize(
    "terms",
    [
        [(DEGREE, "1")],
        [(DEGREE, "-1"), (DENSITY, "0.37")],
        [(DEGREE, "1e-12"), (DENSITY, "1e12")],
        [(BETWEENNESS, "0.001"), (DENSITY, "3.14159"), (DEGREE, "-1e6")],
    ],
)
def test_every_bound_stays_in_64_bits(
    terms: list[tuple[Objective, str]], bound: int, sensitivity: Sensitivity
) -> None:
    objective, dataset = weighted(*terms), dataset_of(317_080, bound)
    chosen = objective.weighing(dataset, AllNodes(), sensitivity)
    grid = chosen.grid
    assert grid.bits >= min(1, max(member.bits for member in chosen.members))
    assert grid.largest < LIMIT
    assert grid.cap * (grid.horizon if sensitivity is Sensitivity.SHIFTED else 1) < LIMIT
    assert score_bound(grid, 20) < LIMIT
    largest = max(abs(Fraction(w)) for _, w in terms)
    for whole, (_, w) in zip(chosen.weights, terms, strict=True):
        assert abs(whole - chosen.scale * Fraction(w)) <= max(Fraction(1, 2), 1)
    assert chosen.scale == Fraction(max(map(abs, chosen.weights))) / largest


def test_weights_give_way_before_the_grid_vanishes() -> None:
    """Betweenness, shifted, without a degree bound has 9 bits to share with the weights."""
    objective = weighted((BETWEENNESS, "0.3333333"), (DENSITY, "1"))
    chosen = objective.weighing(dataset_of(317_080, 317_079), AllNodes(), Sensitivity.SHIFTED)
    fineness = max(chosen.weights).bit_length() - 1
    assert (fineness, chosen.grid.bits) == (5, 5)


def test_where_nothing_fits_the_query_is_refused() -> None:
    class Wide(type(DEGREE)):  # type: ignore[misc]
        def grid(self, *args: object) -> object:
            return replace(super().grid(*args), largest=LIMIT - 1)

    with pytest.raises(UnsupportedQuery, match="too large for an exact weighted sum"):
        weighted((Wide(), "1"), (DENSITY, "-1")).grid(
            dataset_of(9, 8), AllNodes(), Sensitivity.LOCAL
        )


def test_another_grid_is_refused() -> None:
    dataset, objective = dataset_of(6, 5), weighted((DEGREE, "1"), (DENSITY, "2"))
    grid = objective.grid(dataset, AllNodes(), Sensitivity.LOCAL).coarser(3)
    with pytest.raises(ValueError, match="own grid"):
        objective.measure(records_of(KITE), dataset, AllNodes(), Sensitivity.LOCAL, grid)


@pytest.mark.parametrize(
    "terms, direction",
    [
        ([(DEGREE, "1"), (DENSITY, "100")], -1),
        ([(DEGREE, "100"), (DENSITY, "0.01")], -1),
        ([(DEGREE, "1"), (DENSITY, "-100")], -1),
        ([(DEGREE, "-1"), (DENSITY, "100")], 1),
        ([(DENSITY, "1")], 1),
        ([(DENSITY, "-1")], -1),
        ([(BETWEENNESS, "1"), (DENSITY, "1e6")], 1),
        ([(BETWEENNESS, "-1"), (DEGREE, "1e6")], -1),
        ([(DEGREE, "5"), (BETWEENNESS, "0")], 1),
        ([(DEGREE, "-5")], 1),
        ([(UTILITIES["information_gain"], "1"), (UTILITIES["gini"], "1")], 1),
        ([(UTILITIES["information_gain"], "-1"), (UTILITIES["gini"], "-1")], -1),
    ],
)
def test_the_direction_is_a_rule_on_the_weights(
    terms: list[tuple[Objective, str]], direction: int
) -> None:
    assert weighted(*terms).direction == direction


def test_one_weighted_utility_scores_as_by_itself() -> None:
    dataset, records = dataset_of(6, 5), records_of(KITE)
    for member in (DEGREE, DENSITY, BETWEENNESS):
        for sensitivity in Sensitivity:
            judged = []
            for objective in (member, weighted((member, "0.125"))):
                grid = objective.grid(dataset, AllNodes(), sensitivity)
                result = objective.measure(records, dataset, AllNodes(), sensitivity, grid)
                judged.append(scores(result, grid, sensitivity, 20, objective.direction).tolist())
            assert judged[0] == judged[1]


@pytest.mark.parametrize("weights", [("1", "1"), ("2", "-3")])
def test_of_the_two_rates_the_larger_counts_under_add_remove(weights: tuple[str, str]) -> None:
    """Δ = max(|w₁|, |w₂|)/2, δ = max(|w₁|·δ₁, |w₂|·δ₂); under replace both are sums."""
    rates = [UTILITIES[name] for name in ("true_positive_rate", "true_negative_rate")]
    objective, factors = weighted(*zip(rates, weights, strict=True)), [abs(int(w)) for w in weights]
    for relation, combined in ((ADD_REMOVE, max), (REPLACE, sum)):
        universe = FAMILIES["trees", relation].build(3, 2, 1, 3)
        for records in universe.records:
            arguments = universe.dataset, universe.candidates, Sensitivity.LOCAL
            grid = objective.grid(*arguments)
            assert grid.cap == combined(factors) << grid.bits - (relation is ADD_REMOVE)
            delta = objective.measure(records, *arguments, grid).delta
            own = [rate.measure(records, *arguments, rate.grid(*arguments)).delta for rate in rates]
            everyone = np.arange(universe.candidates.count(universe.dataset))
            for t in range(grid.horizon):
                steps = [w * d.at(t, everyone) for w, d in zip(factors, own, strict=True)]
                assert delta.at(t, everyone).tolist() == [
                    combined(pair) for pair in zip(*(row.tolist() for row in steps), strict=True)
                ]
