"""The search: exact prices, public refusals, and better trees at a larger loss."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.composition import total
from accounting.privacy_loss import PrivacyLoss
from mechanisms.kernels.forests import confusion
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.forest import forest
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.trees.evolutionary import Search, search
from mechanisms.trees.evolutionary import search as _search_function
from mechanisms.trees.evolutionary.fitness import Fitness
from mechanisms.trees.evolutionary.front import Front
from mechanisms.trees.evolutionary.proposals import positions
from mechanisms.trees.task import Task
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.trees.tables import dataset, depth, people, records

PUBLIC = dataset()
WEIGHTS = {"true_positive_rate": Decimal(3), "true_negative_rate": Decimal(2)}
Objective = Literal["pareto", "weighted_sum"]


def search_of(
    objective: Objective = "weighted_sum",
    sensitivity: Sensitivity = Sensitivity.LOCAL,
    selector: str = "permute_and_flip",
    public: Dataset = PUBLIC,
    **changes: Any,
) -> Search:
    sizes: dict[str, Any] = {
        "population": 30,
        "generations": 2,
        "selected": 6,
        "outputs": 1,
        "initial_depth": 2,
        "max_depth": 4,
        "positive_class": "yes",
    }
    return Search(
        task=Task.of(public, None, "paid"),
        fitness=Fitness(objective, WEIGHTS, sensitivity),
        selector=SELECTORS[selector],
        **(sizes | changes),
    )


def rates(trees: list[dict[str, Any]], table: Any) -> tuple[Any, Any]:
    counts = confusion(table, forest(trees, PUBLIC.domain, "paid", "yes"))  # type: ignore[arg-type]
    return counts.true_positives / counts.positives, counts.true_negatives / counts.negatives


def fitness(trees: list[dict[str, Any]], table: Any) -> Any:
    positive, negative = rates(trees, table)
    return 3 * positive + 2 * negative


@pytest.mark.parametrize("selector", SELECTORS)
@pytest.mark.parametrize("sensitivity", [Sensitivity.GLOBAL, Sensitivity.LOCAL])
@pytest.mark.parametrize("objective", ["pareto", "weighted_sum"])
def test_good_trees_are_found_at_a_large_loss(
    objective: Objective, sensitivity: Sensitivity, selector: str
) -> None:
    table = people(5000)
    options = search_of(objective, sensitivity, selector, outputs=3)
    loss, sums = PrivacyLoss(10**14), []
    for seed in range(6):
        trees = search(context(table, PUBLIC, loss, SeededRandomness(seed)), options)
        assert len(trees) == 3
        assert max(map(depth, trees)) <= 4
        sums.append(sum(rates(trees, table)))
    # The two rates of a tree add up to 1 on average for random trees and single labels, and to 2
    # for the true rule.
    assert np.mean(sums) > (1.6 if objective == "weighted_sum" else 1.15)


def test_a_weighted_sum_beats_guessing_by_much() -> None:
    table = people(5000)
    options = search_of(generations=3)
    good, bad = (
        [
            fitness(
                search(context(table, PUBLIC, PrivacyLoss(nano), SeededRandomness(seed)), options),
                table,
            )[0]
            for seed in range(8)
        ]
        for nano in (10**14, 10**4)
    )
    # The mean fitness is 4.7 with the large ε and 2.5 with the small one. The difference is ten
    # standard errors.
    assert np.mean(good) > np.mean(bad) + 1


def test_a_front_trades_one_rate_for_the_other() -> None:
    table, options = people(5000), replace(search_of(outputs=3, generations=3), fitness=Front())
    loss = PrivacyLoss(10**14)
    answers = [
        rates(search(context(table, PUBLIC, loss, SeededRandomness(seed)), options), table)
        for seed in range(6)
    ]
    positive, negative = (np.mean([one[side] for one in answers], axis=0) for side in (0, 1))
    # The first draw weighs the true negative rate by five sixths, and the last one the true
    # positive rate.
    assert positive[0] < positive[2]
    assert negative[0] > negative[2]
    # The two rates of a tree with a single label add up to 1.
    assert np.mean(positive + negative) > 1.6


@pytest.mark.parametrize("selector", sorted(SELECTORS))
def test_steps_of_a_front_add_up_to_the_loss(selector: str) -> None:
    options = replace(search_of(selector=selector, selected=6, outputs=4), fitness=Front())
    for nano in (10**7, 10**9 + 7, 10**13 + 1):
        loss = PrivacyLoss(nano)
        steps = options.steps(PUBLIC, loss)
        assert total(steps) == loss
        assert steps[0].loss.epsilon_nano == nano // 20
        assert sum(step.times for step in steps[1:]) == sum(options.draws) == 16
        whole = options.whole_for(loss).epsilon_nano
        enough, less = (options.shares(PrivacyLoss(one))[1] for one in (whole, whole - 2))
        assert less.epsilon_nano < nano <= enough.epsilon_nano


def test_a_front_of_too_many_rows_is_refused() -> None:
    domain = replace(PUBLIC.domain, max_rows=1 << 42)
    with pytest.raises(UnsupportedQuery, match="rows"):
        Front().check(replace(PUBLIC, domain=domain), 1, 1)


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The trees that searches evaluate, as they do so."""
    seen: list[Any] = []
    module = __import__(_search_function.__module__, fromlist=["flattened"])
    flatten = module.flattened

    def counted(trees: Any, *rest: Any) -> Any:
        seen.extend(trees)
        return flatten(trees, *rest)

    monkeypatch.setattr(module, "flattened", counted)
    return seen


@pytest.mark.parametrize(
    "changes",
    [
        {"generations": 0, "population": 1},
        {"generations": 0, "population": 1, "initial_depth": 0},
        {"generations": 0, "population": 1, "initial_depth": 0, "max_depth": 0},
        {"generations": 4, "initial_depth": 0},
        {"generations": 4},
    ],
)
def test_no_more_nodes_are_evaluated_than_the_work_counts(
    evaluated: list[Any], changes: dict[str, Any]
) -> None:
    options = search_of(**changes)
    for seed in range(5):
        evaluated.clear()
        search(context(people(50), PUBLIC, PrivacyLoss(10**9), SeededRandomness(seed)), options)
        nodes = sum(len(positions(tree)) for tree in evaluated)
        most = options.work(PUBLIC)["proposals"].units
        # The work counts one node more per tree than a full tree has. Random trees are always full,
        # so without generations the number of nodes is exact.
        proposed = options.population * (options.generations + 1)
        assert nodes <= most - proposed if options.generations else nodes == most - proposed


def test_each_distinct_tree_is_evaluated_once(evaluated: list[Any]) -> None:
    options = search_of(population=60, generations=4, initial_depth=1, max_depth=1)
    search(context(people(500), PUBLIC, PrivacyLoss(10**10), SeededRandomness(2)), options)
    # Trees with one test have 2 + 4 + 3 possible tests, each with two ways to label the leaves. Two
    # trees are a single leaf, which makes 20 trees in all.
    assert len(evaluated) == len(set(evaluated)) <= 20


@settings(deadline=None, max_examples=60)
@given(
    st.integers(10**6, 10**13),
    st.integers(1, 40),
    st.integers(0, 5),
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from(sorted(SELECTORS)),
)
def test_steps_add_up_to_the_loss(
    epsilon: int, population: int, generations: int, selected: int, outputs: int, selector: str
) -> None:
    selected = min(selected, population)
    outputs = min(outputs, population)
    options = search_of(
        selector=selector,
        population=population,
        generations=generations,
        selected=selected,
        outputs=outputs,
    )
    loss = PrivacyLoss(epsilon)
    steps = options.steps(PUBLIC, loss)
    assert total(steps) == loss
    assert sum(options.losses(loss), PrivacyLoss(0)) == loss
    draws = generations * selected + outputs
    assert sum(options.draws) == draws
    assert min(part.epsilon_nano for part in options.losses(loss)) == epsilon // (generations + 1)
    if selector == "permute_and_flip":
        assert sum(step.times for step in steps) == draws


def test_draws_of_the_papers_settings() -> None:
    assert sum(search_of(population=30, generations=3, selected=3, outputs=3).draws) == 12
    assert sum(search_of(population=100, generations=2, selected=20, outputs=1).draws) == 41
    assert search_of(population=30, generations=3, selected=3).pools == [30, 33, 33, 33]


@pytest.mark.parametrize("sensitivity", [Sensitivity.GLOBAL, Sensitivity.LOCAL])
@pytest.mark.parametrize("objective", ["pareto", "weighted_sum"])
def test_corners_have_answers(objective: Objective, sensitivity: Sensitivity) -> None:
    nothing = records({"sex": [], "town": [], "age": [], "paid": []}, {"age": []})
    same = records(
        {name: [1] * 50 for name in ("sex", "town", "age", "paid")}, {"age": [30.0] * 50}
    )
    for table in (nothing, same, people(50)):
        for changes in (
            {"generations": 0, "population": 1},
            {"generations": 0, "outputs": 30},
            {"initial_depth": 0, "max_depth": 0},
            {"selected": 30, "outputs": 60, "generations": 1},
        ):
            options = search_of(objective, sensitivity, **changes)
            loss = PrivacyLoss(10**9)
            trees = search(context(table, PUBLIC, loss, SeededRandomness(3)), options)
            assert len(trees) == options.outputs


@pytest.mark.parametrize(
    "changes",
    [
        {"positive_class": "maybe"},
        {"initial_depth": 5, "max_depth": 4},
        {"selected": 31},
        {"outputs": 37},
        {"population": 10_000, "generations": 100, "max_depth": 10},
    ],
)
def test_what_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedQuery):
        search_of(**changes)


@pytest.mark.parametrize("sensitivity", [Sensitivity.SHIFTED, Sensitivity.FLATTENED])
def test_other_sensitivities_are_refused(sensitivity: Sensitivity) -> None:
    with pytest.raises(UnsupportedQuery):
        search_of(sensitivity=sensitivity).steps(PUBLIC, PrivacyLoss(10**9))
