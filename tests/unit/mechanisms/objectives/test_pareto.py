"""The Pareto score: worked values, a twin by definition, scores after a draw, refusals."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.model.candidates import AllNodes
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.objectives import OBJECTIVES, Pareto, Term, WeightedSum, pareto_sensitivity
from mechanisms.objectives.pareto_sensitivity import ParetoSensitivity
from mechanisms.selection.dampening import dampened_scores, scores
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.covering import ConstantSensitivity
from mechanisms.utilities.utility import Grid, Measurement
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.support.sequences import Sequences

#: Two utilities of five candidates, with a sensitivity δ of one half for all. All numbers are
#: doubled, so that δ is one whole step.
FIVE = np.array([[3, 5, 4, 2, 1], [5, 3, 2, 4, 1]]) * 2


def sensitivity_of(values: Integers, cap: int = 1, horizon: int = 64) -> ParetoSensitivity:
    """δ of members with constant δ."""
    grid = Grid(bits=0, cap=cap, horizon=1, largest=int(np.abs(values).max()))
    members = [Measurement(row, ConstantSensitivity(cap, row.size)) for row in values]
    return ParetoSensitivity.of(members, [grid] * len(values), horizon, Inline())


def test_five_candidates() -> None:
    delta = sensitivity_of(FIVE)
    assert delta.dominators.tolist() == [0, 0, 1, 1, 4]
    everyone = np.arange(5)
    rows = np.stack([delta.at(t, everyone) for t in range(5)], axis=1)
    # δ is at least one step. The exact δ of undominated candidates is 0, but their dampened score
    # is 0 either way.
    assert rows.tolist() == [
        [1, 1, 2, 3, 4],
        [1, 1, 2, 3, 4],
        [1, 2, 3, 4, 4],
        [1, 2, 3, 4, 4],
        [2, 4, 4, 4, 4],
    ]
    assert delta.cap == 4
    scores = dampened_scores(-delta.dominators.astype(np.int64), delta, 20)
    assert scores.tolist() == [0, 0, -(1 << 20), -(1 << 20), -(3 << 19)]


def test_a_candidate_does_not_count_itself_among_its_rivals() -> None:
    """(4, 2) is dominated by (5, 3) alone, and nothing else can change that in one step."""
    assert sensitivity_of(FIVE).at(0, np.array([2])).tolist() == [1]


Rows = list[list[list[int]]]


def by_definition(values: Integers, deltas: Rows, cap: int, t: int, r: int) -> int:
    """max(|dom⁻_t| + |ndom⁺_{t−1}|, |ndom⁺_t| + |dom⁻_{t−1}|) from the sets themselves."""

    def box(member: int, candidate: int, upto: int) -> tuple[int, int]:
        row = deltas[member][candidate]
        step = sum(row[j] if j < len(row) else cap for j in range(upto + 1))
        value = int(values[member][candidate])
        return value - step, value + step

    def losable(upto: int) -> int:
        return (
            sum(
                dominates(s) and any(box(i, s, upto)[0] <= box(i, r, upto)[1] for i in members)
                for s in others
            )
            if upto >= 0
            else 0
        )

    def gainable(upto: int) -> int:
        return (
            sum(
                not dominates(s) and all(box(i, s, upto)[1] > box(i, r, upto)[0] for i in members)
                for s in others
            )
            if upto >= 0
            else 0
        )

    def dominates(s: int) -> bool:
        return all(values[i][s] > values[i][r] for i in members)

    members = range(len(values))
    others = [s for s in range(values.shape[1]) if s != r]
    return max(losable(t) + gainable(t - 1), gainable(t) + losable(t - 1))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Integers, Rows, int]:
    members, size, steps = draw(st.integers(1, 3)), draw(st.integers(1, 7)), 4
    spread, cap = draw(st.sampled_from([2, 6, 40])), draw(st.integers(1, 9))
    values = [[draw(st.integers(-spread, spread)) for _ in range(size)] for _ in range(members)]
    rising = st.lists(st.integers(1, cap), min_size=steps, max_size=steps).map(sorted)
    deltas = [[draw(rising) for _ in range(size)] for _ in range(members)]
    return np.array(values), deltas, cap


def measured(values: Integers, deltas: Rows, cap: int, horizon: int) -> ParetoSensitivity:
    grid = Grid(bits=0, cap=cap, horizon=4, largest=int(np.abs(values).max()))
    members = [Measurement(u, Sequences(rows, cap)) for u, rows in zip(values, deltas, strict=True)]
    return ParetoSensitivity.of(members, [grid] * len(values), horizon, Inline())


@settings(deadline=None)  # the first call loads compiled code, so no call has a time limit
@given(cases(), st.integers(1, 8), st.booleans(), st.data())
def test_delta_is_that_of_the_definition(
    case: tuple[Integers, Rows, int], horizon: int, keep: bool, data: st.DataObject
) -> None:
    """In any order of t, with levels kept or not, before and after candidates are taken."""
    values, deltas, cap = case
    limit, pareto_sensitivity.CACHE_BYTES = pareto_sensitivity.CACHE_BYTES, 1 << 26 if keep else 64
    try:
        delta = measured(values, deltas, cap, horizon)
        while True:
            size = values.shape[1]
            twin = [
                [max(1, by_definition(values, deltas, cap, t, r)) for r in range(size)]
                if t < horizon
                else [max(size - 1, 1)] * size
                for t in range(horizon + 2)
            ]
            assert delta.dominators.tolist() == [
                sum((values[:, s] > values[:, r]).all() for s in range(size)) for r in range(size)
            ]
            for t in data.draw(st.permutations(range(horizon + 2))):
                assert delta.at(t, np.arange(size)).tolist() == twin[t]
                assert delta.largest(t) == max(twin[t])
            short = [sum(delta.cap - row[r] for row in twin[:horizon]) for r in range(size)]
            assert delta.shortfall().tolist() == short
            if size == 1:
                break
            place = data.draw(st.integers(0, size - 1))
            delta = delta.without(place)
            values = np.delete(values, place, axis=1)
            deltas = [rows[:place] + rows[place + 1 :] for rows in deltas]
    finally:
        pareto_sensitivity.CACHE_BYTES = limit


NODES = [Term(UTILITIES["degree"]), Term(UTILITIES["egocentric_density"])]
WHEEL = graph_of(7, [(0, v) for v in range(1, 7)] + [(1, 2), (3, 4), (5, 6)])


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_the_objective_measures_every_member_on_its_own_grid(sensitivity: Sensitivity) -> None:
    dataset, objective = dataset_of(7, 6), OBJECTIVES["pareto"](NODES)
    grid = objective.grid(dataset, AllNodes(), sensitivity)
    assert grid == Grid(bits=0, cap=6, horizon=8, largest=6)
    assert objective.direction == -1
    result = objective.measure(records_of(WHEEL), dataset, AllNodes(), sensitivity, grid)
    # No node dominates another: the hub has the highest degree, and all others have degree 2 and
    # density 1.
    assert result.utilities.tolist() == [0] * 7
    judged = scores(result, grid, sensitivity, 20, objective.direction)
    if sensitivity is not Sensitivity.SHIFTED:
        assert not judged.any()


def test_global_scores_divide_by_the_number_of_others() -> None:
    chain = graph_of(6, [(0, v) for v in range(1, 5)] + [(1, 2), (1, 3), (2, 3), (2, 4), (3, 4)])
    dataset, objective = dataset_of(6, 5), Pareto(NODES)
    grid = objective.grid(dataset, AllNodes(), Sensitivity.GLOBAL)
    result = objective.measure(records_of(chain), dataset, AllNodes(), Sensitivity.GLOBAL, grid)
    # Node 5 has no edge. All five other nodes are in a triangle, so both their degree and their
    # density are larger.
    assert result.utilities[5] == -5
    expected = [Fraction(int(u), 5) for u in result.utilities]
    judged = scores(result, grid, Sensitivity.GLOBAL, 20, -1)
    assert judged.tolist() == [(w * 2**20).__floor__() for w in expected]


@pytest.mark.parametrize(
    "terms, match",
    [
        ([], "two utilities"),
        (NODES[:1], "two utilities"),
        ([Term(UTILITIES["degree"], Decimal(1)), NODES[1]], "without weights"),
        ([NODES[0], Term(Pareto(NODES))], "a utility or a weighted sum"),
        ([NODES[0], Term(UTILITIES["count"])], "same kind"),
    ],
)
def test_terms_that_do_not_fit_are_refused(terms: list[Term], match: str) -> None:
    with pytest.raises(UnsupportedQuery, match=match):
        OBJECTIVES["pareto"](terms)


def test_three_members_are_bounded_by_public_work() -> None:
    three = Pareto([*NODES, Term(UTILITIES["egocentric_betweenness"])])
    three.grid(dataset_of(37_700, 9_458), AllNodes(), Sensitivity.LOCAL)
    with pytest.raises(UnsupportedQuery, match="too many candidates"):
        three.grid(dataset_of(317_080, 343), AllNodes(), Sensitivity.LOCAL)
    Pareto(NODES).grid(dataset_of(317_080, 343), AllNodes(), Sensitivity.LOCAL)


def test_a_member_may_be_a_weighted_sum() -> None:
    both = WeightedSum([Term(NODES[0].member, Decimal(1)), Term(NODES[1].member, Decimal(100))])
    objective = Pareto([Term(both), Term(UTILITIES["egocentric_betweenness"])])
    dataset = dataset_of(7, 6)
    grid = objective.grid(dataset, AllNodes(), Sensitivity.LOCAL)
    result = objective.measure(records_of(WHEEL), dataset, AllNodes(), Sensitivity.LOCAL, grid)
    # No node dominates another: degree + 100·density is 102 at the rim and 26 at the hub, and only
    # the hub has betweenness.
    assert result.utilities.tolist() == [0] * 7


def test_what_another_objective_measured_is_refused() -> None:
    grid = Grid(bits=0, cap=1, horizon=1, largest=1)
    foreign = Measurement(np.zeros(3, np.int64), ConstantSensitivity(1, 3))
    with pytest.raises(TypeError, match="Pareto"):
        Pareto(NODES).without(foreign, grid, 0)
