"""Quotes of id3, forests and naive Bayes: the expected learner, targets, and public costs."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries import QUERY
from app.queries.parts.examples import ADULT
from app.queries.parts.query import Query
from mechanisms.model.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.tables.plan import TablePlan
from mechanisms.trees import class_counts
from mechanisms.trees.id3 import Id3

assert isinstance(ADULT.domain, TableDomain)
REPLACED = Dataset(
    "adult", NeighbouringRelation.REPLACE, replace(ADULT.domain, rows=50_000, max_rows=None)
)
PERSONS = replace(ADULT, records_per_person=3)
BODIES: dict[str, dict[str, Any]] = {
    "id3": {},
    "forest": {"algorithm": "forest"},
    "private forest": {"algorithm": "forest", "splits": "private", "trees": 3},
    "naive bayes": {"algorithm": "naive_bayes"},
}
TARGET = "leaf_count_error"
EVERY = pytest.mark.parametrize("name", BODIES)


def query(name: str, **more: Any) -> Query:
    body = {"kind": "tree", **BODIES[name], **more}
    parsed: Query = QUERY.validate_json(json.dumps(body))
    return parsed


@EVERY
def test_every_quote_names_the_learner_to_expect(name: str) -> None:
    for epsilon, best in (("0.002", "forest"), ("0.003", "naive_bayes"), ("5", "id3")):
        accuracy = query(name).price(ADULT, PrivacyLoss.parse(epsilon)).accuracy()
        assert accuracy["expected_best"] == best
        assert "`expected_best`" in accuracy["explanation"]


@EVERY
@pytest.mark.parametrize("dataset", [ADULT, REPLACED, PERSONS])
def test_a_target_gives_the_least_loss_that_reaches_it(name: str, dataset: Dataset) -> None:
    one = query(name)
    (target,) = (own for own in one.targets if own.endswith("count_error"))
    loss = one.loss_reaching(dataset, {target: 50})
    assert one.price(dataset, loss).accuracy()[target] <= 50
    less = PrivacyLoss(loss.epsilon_nano * 99 // 100)
    assert one.price(dataset, less).accuracy()[target] > 50
    with pytest.raises(UnsupportedQuery):
        one.loss_reaching(dataset, {"error": 50})


def test_a_certificate_names_the_mechanisms_that_draw() -> None:
    used = {name: query(name).mechanisms() for name in BODIES}
    selects = {"permute_and_flip"}
    assert used == {
        "id3": selects,
        "forest": set(),
        "private forest": selects,
        "naive bayes": set(),
    }


@pytest.mark.parametrize(("rows", "trees"), [(400, "2"), (4000, "4")])
def test_a_forest_reaches_a_target_by_its_default_of_trees(rows: int, trees: str) -> None:
    assert isinstance(ADULT.domain, TableDomain)
    small = replace(ADULT, domain=replace(ADULT.domain, max_rows=rows))
    one = query("forest")
    loss = one.loss_reaching(small, {TARGET: 50})
    price = one.price(small, loss)
    assert price.resolved == {"trees": trees}
    assert len(price.steps) == int(trees)
    assert price.accuracy()[TARGET] <= 50
    less = PrivacyLoss(loss.epsilon_nano * 99 // 100)
    assert one.price(small, less).accuracy()[TARGET] > 50
    assert query("forest", trees=int(trees)).loss_reaching(small, {TARGET: 50}) == loss
    assert query("forest", trees=4).price(small, loss).resolved == {}


def test_a_target_plans_as_much_for_many_tables_and_trees_as_for_few(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Targets are searched for in quotes, which cost nothing."""
    plans: list[object] = []
    table, budget = class_counts.TablePlan, Id3.budget

    def planned(*arguments: Any) -> TablePlan:
        plans.append(arguments)
        return table(*arguments)

    def budgeted(self: Id3, *arguments: Any) -> Any:
        plans.append(arguments)
        return budget(self, *arguments)

    monkeypatch.setattr(class_counts, "TablePlan", planned)
    monkeypatch.setattr(Id3, "budget", budgeted)
    for small, large in (
        (query("naive bayes", attributes=["sex"]), query("naive bayes")),
        (query("private forest"), query("private forest", trees=60)),
    ):
        counts = []
        for one in (small, large):
            plans.clear()
            (target,) = (own for own in one.targets if own.endswith("count_error"))
            one.loss_reaching(ADULT, {target: 500})
            counts.append(len(plans))
        assert 0 < counts[1] <= counts[0] + 20


@EVERY
@pytest.mark.parametrize("dataset", [ADULT, REPLACED, PERSONS])
def test_steps_add_up_to_the_charge(name: str, dataset: Dataset) -> None:
    loss = PrivacyLoss(3 * NANO + 7)
    assert query(name).price(dataset, loss).total() == loss


def test_more_trees_take_more_work_and_less_rho() -> None:
    loss = PrivacyLoss(NANO)
    few, many = (query("forest", trees=trees) for trees in (2, 32))
    assert many.price(ADULT, loss).rho_femto() * 10 < few.price(ADULT, loss).rho_femto()
    works = [one.work(ADULT, loss)["rows of tables"].units for one in (few, many)]
    assert works[0] * 16 == works[1]


@pytest.mark.parametrize("wrong", [{"selector": "exponential"}, {"max_depth": 3}, {"trees": 4}])
def test_naive_bayes_takes_no_options_of_trees(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="extra"):
        query("naive bayes", **wrong)
