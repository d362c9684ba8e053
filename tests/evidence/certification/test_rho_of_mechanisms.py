"""Every mechanism states a bound on ρ, and exact laws on neighbours stay within it.

``test_rho`` compares kinds of releases. Here mechanisms state their bounds themselves. Two tables
name the tests of each bound: a new bound, a new place that states one, and a deleted test fail.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from accounting import rho
from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import (
    BoundedRange,
    GaussianNoise,
    LaplaceNoise,
    LaplaceNoiseOnPersons,
    Pure,
    RhoBound,
    Together,
)
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.joint_influence import EdgeInfluence, Exchange, JointInfluence
from mechanisms.model.joint_influence import Together as MovingTogether
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.noise.rate import Rate
from mechanisms.selection import LAPLACE
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.quantile import Quantile
from mechanisms.statistics.release.exponential import ExponentialQuantile
from mechanisms.statistics.release.laplace import Laplace
from mechanisms.trees.id3.budget import LeafRest
from tests.architecture.imports import ROOT
from tests.evidence.certification import test_distances, test_persons, test_rho
from tests.evidence.certification.test_rho import (
    ALPHAS,
    SLACK,
    divergence,
    excess,
    laplace_logs,
    normalised,
    of_cells,
)
from tests.evidence.certification.test_table_statistics import HIGH, near, tables
from tests.support.contexts import context
from tests.unit.accounting import test_rho as test_formulas
from tests.unit.mechanisms.distances.tables import planned, table
from tests.unit.mechanisms.statistics.worlds import RELATIONS, table_dataset
from tests.unit.mechanisms.statistics.worlds import table as records_of

Test = Callable[..., None]
LOSSES = [PrivacyLoss.parse(epsilon) for epsilon in ("0.1", "1", "4")]
IN_RHO = PrivacyLoss(0, 0, 7 * 10**14, 1)


def bound_of(step: Step) -> float:
    """The ρ that a step states, which its charge covers."""
    assert step.bound is not None
    assert step.bound.femto() <= step.rho_femto
    return float(step.bound.of_group(1))


def of_laplace(rate: float, spread: tuple[int, ...]) -> float:
    """The most D_α/α of numbers with Laplace noise that move by ``spread``."""
    reach = int(45 / rate) + max(spread)
    laws = {one: laplace_logs(rate, one, reach) for one in {0, *spread}}
    return max(sum(divergence(laws[0], laws[one], a) for one in spread) / a for a in ALPHAS)


INFLUENCES = [
    (MovingTogether(9, 1, 1), (1,)),
    (Exchange(9, 1), (1, 1)),
    (EdgeInfluence(9, 1, 0, 0, 0), (1, 1)),
]


@pytest.mark.parametrize("influence, spread", INFLUENCES)
def test_vectors_of_scores(influence: JointInfluence, spread: tuple[int, ...]) -> None:
    """All scores are released, so those that move are compared, by the law of each."""
    for loss in LOSSES:
        (step,) = LAPLACE.steps(loss, influence)
        rate = float(loss.epsilon() / len(spread))
        assert 0.9 * bound_of(step) < of_laplace(rate, spread) <= bound_of(step) + SLACK
    (step,) = LAPLACE.steps(IN_RHO, influence)
    exact = of_cells(LAPLACE.deviation(IN_RHO, influence), spread, 1)
    assert 0.99 * bound_of(step) < exact <= bound_of(step) + SLACK
    # If one change moves several scores, the check must reject noise that suffices for only one.
    if len(spread) > 1:
        assert of_cells(Deviation.of(IN_RHO.rho_femto, 1), spread, 1) > bound_of(step) + SLACK


@pytest.mark.parametrize("cap", [1, 9])
def test_statistics_with_laplace_noise(cap: int) -> None:
    for loss in LOSSES:
        bound = Laplace().rho_bound(loss, Plan(0, cap)).of_group(1)
        exact = of_laplace(float(loss.epsilon()) / cap, (cap,))
        assert 0.9 * float(bound) < exact <= float(bound) + SLACK


@pytest.mark.parametrize("relation", RELATIONS)
def test_quantiles(relation: NeighbouringRelation) -> None:
    """By the scores of all small tables and their neighbours."""
    mechanism, whole = ExponentialQuantile(), table_dataset(relation, 4, 0.0, float(HIGH))
    for share in (Fraction(1, 2), Fraction(1, 3)):
        statistic = Quantile("x", share)
        scores = {}
        for rows in tables(4):
            dataset = table_dataset(relation, len(rows), 0.0, float(HIGH))
            at = context(records_of(rows), dataset)
            scores[rows] = statistic.rank_scores(at, statistic.cells(dataset))
        pairs = {
            (tuple(map(int, scores[rows])), tuple(map(int, scores[other])))
            for rows in scores
            for other in near(rows, relation, 4)
        }
        for loss in (LOSSES[1], LOSSES[2]):
            (step,) = mechanism.steps(statistic, whole, loss)
            rate = float(loss.epsilon()) / (2 * statistic.rank_sensitivity(whole))
            laws = {row: normalised([rate * one for one in row]) for pair in pairs for row in pair}
            bound = Fraction(bound_of(step))
            assert max(excess(laws[x], laws[y], bound) for x, y in pairs) <= SLACK


@pytest.mark.parametrize("relation, moves", [("replace", 2), ("add_remove", 1)])
def test_tables_of_distances(relation: str, moves: int) -> None:
    """With either noise. ``test_distances`` enumerates that so many cells move, each by 1."""
    plan = planned(table(relation)[0], context="baseline")
    spread = (1,) * (moves * plan.tables)
    for loss in (*LOSSES, IN_RHO):
        (step,) = plan.steps(loss)
        noise = plan.table_noise(loss, plan.tables)
        if isinstance(noise, Rate):
            exact = of_laplace(float(noise.exponent()), spread)
        else:
            exact = of_cells(noise, spread, 1)
        assert 0.9 * bound_of(step) < exact <= bound_of(step) + SLACK


#: For each class of bounds on ρ, a test that must fail if the bound is a tenth too small.
COMPARED: dict[type[RhoBound], Callable[[], None]] = {
    Pure: lambda: test_rho.test_c_times_rho_for_a_person_with_c_rows_is_refused(
        Pure(Fraction("0.1"))
    ),
    BoundedRange: test_rho.test_quantiles_and_trees_select_by_scores_that_all_move_at_once,
    LaplaceNoise: lambda: test_rho.test_laplace_noise(Fraction(1, 50), 7, 3, 1),
    LaplaceNoiseOnPersons: test_persons.test_the_charge_in_rho_covers_a_whole_person,
    GaussianNoise: lambda: test_rho.test_gaussian_noise(Fraction(7, 10), 1),
    Together: test_formulas.test_steps_add_up_in_rho,
    LeafRest: test_rho.test_trees_with_leaves_that_stop_early,
}
#: For each module that states bounds on ρ, the tests that compare these bounds with exact laws.
STATED: dict[str, tuple[Test, ...]] = {
    "clustering/lloyd": (
        test_distances.test_counts_and_sums_of_clusters_move_by_what_their_noise_covers,
    ),
    "distances/plan": (test_tables_of_distances, test_rho.test_gaussian_tables_of_distances),
    "selection/exponential": (test_rho.test_every_selection,),
    "selection/noisy_vector": (test_vectors_of_scores,),
    "selection/selector": (test_rho.test_every_selection,),
    "selection/subset": (test_rho.test_sets_of_candidates,),
    "statistics/release/added_noise": (test_rho.test_any_release_is_at_most_randomised_response,),
    "statistics/release/exponential": (test_quantiles,),
    "statistics/release/ladder": (test_rho.test_the_ladder,),
    "statistics/release/laplace": (test_statistics_with_laplace_noise,),
    "statistics/release/noisy_local": (test_rho.test_any_release_is_at_most_randomised_response,),
    "tables/noise": (
        test_rho.test_a_replaced_row_moves_one_sum_of_a_table_by_both_changes,
        test_rho.test_gaussian_noise,
        test_persons.test_the_charge_in_rho_covers_a_whole_person,
    ),
    "trees/id3/budget": (
        test_rho.test_trees_with_leaves_that_stop_early,
        test_rho.test_trees_with_leaves_that_take_what_is_left_of_rho,
    ),
    "trees/id3/gaussian_budget": (test_rho.test_trees_with_gaussian_counts,),
}


def test_every_class_of_bounds_is_compared_with_exact_laws() -> None:
    # Classes are compared by name: a dataclass with slots is a second class beside the one from
    # which it was made.
    names = {one.__name__ for one in RhoBound.__subclasses__()}
    assert names == {one.__name__ for one in COMPARED}


@pytest.mark.parametrize("bound", COMPARED, ids=lambda bound: bound.__name__)
def test_a_bound_that_is_too_small_is_caught(
    bound: type[RhoBound], monkeypatch: pytest.MonkeyPatch
) -> None:
    compare, whole = COMPARED[bound], bound.of_group
    compare()

    def less(self: Any, members: int) -> Fraction:
        return whole(self, members) * Fraction(9, 10)

    monkeypatch.setattr(bound, "of_group", less)
    # Charges are cached by the bound, and those of the right bounds must not be found.
    monkeypatch.setattr(rho, "_femto", rho._femto.__wrapped__)
    with pytest.raises(AssertionError):
        compare()


def test_every_module_that_states_a_bound_has_its_tests() -> None:
    folder = ROOT / "mechanisms"
    stating = {
        path.relative_to(folder).with_suffix("").as_posix()
        for path in folder.rglob("*.py")
        if states_a_bound(path)
    }
    # ``clustering/lloyd`` states no bound itself: it has the noise, and the plan of clusters states
    # the bound that is charged.
    assert stating | {"clustering/lloyd"} == STATED.keys()
    assert all(one.__name__.startswith("test_") for tests in STATED.values() for one in tests)


def states_a_bound(path: Path) -> bool:
    """Whether a module imports a class of bounds, other than to say that it returns some."""
    classes = {
        name
        for name, one in vars(rho).items()
        if isinstance(one, type) and issubclass(one, RhoBound) and one is not RhoBound
    }
    text = path.read_text("utf-8")
    return "accounting.rho" in text and any(
        isinstance(node, ast.ImportFrom)
        and node.module == "accounting.rho"
        and classes & {alias.name for alias in node.names}
        for node in ast.walk(ast.parse(text))
    )


def test_orders_of_divergences_are_those_that_were_published() -> None:
    assert ALPHAS == (1.01, 1.5, 2, 3, 8, 64, 1024)
