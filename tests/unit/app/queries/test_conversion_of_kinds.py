"""Every query kind charges the requested loss and runs its mechanism at the converted share.

Only ``app.queries.conversion`` converts; a new kind that bypasses it fails here.
"""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Never

import pytest
from pydantic import TypeAdapter

from accounting.composition import NO_RELEASE
from accounting.group_privacy import group_loss, member_loss
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import BoundedRange, LaplaceNoise, Pure, RhoBound, pure_femto
from app.queries import QUERY_KINDS, AnyQuery, Query, QueryContext
from app.queries.tree.body import ALGORITHMS
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.statistics import MECHANISMS
from mechanisms.statistics.grid import rate_at_most
from tests.support.service import Service

APP = Path(importlib.import_module("app").__path__[0])
ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
DEGREE = {"utilities": [{"name": "degree"}]}
COUNT = {"candidates": {"values_of": "sky"}, "utilities": [{"name": "count"}]}
TREE = {"attributes": ["sky", "coat"], "class_attribute": "kind"}

#: For each kind of query, and each of its algorithms, an example on a graph or on the table below,
#: and the function of the mechanism that gets the loss.
ENTRIES: dict[str, tuple[dict[str, Any], str]] = {
    "selection": ({"kind": "selection", **COUNT}, "app.queries.parts.scored_selection:select_top"),
    "top_k": (
        {"kind": "top_k", "k": 2, "selector": "exponential", **COUNT},
        "app.queries.parts.scored_selection:select_top",
    ),
    "top_k, laplace": (
        {"kind": "top_k", "k": 2, "selector": "laplace", **COUNT},
        "app.queries.parts.scored_selection:select_noisy",
    ),
    "top_k, subset": (
        {"kind": "top_k", "k": 2, "selector": "subset", **COUNT},
        "app.queries.parts.scored_selection:select_set",
    ),
    "selection of nodes": (
        {"kind": "selection", **DEGREE},
        "app.queries.parts.scored_selection:select_top",
    ),
    "tree, id3": ({"kind": "tree", **TREE}, "app.queries.tree.id3:grow"),
    "tree, evolutionary": (
        {"kind": "tree", "algorithm": "evolutionary", "positive_class": "a", **TREE},
        "app.queries.tree.evolutionary:search",
    ),
    "tree, forest": (
        {"kind": "tree", "algorithm": "forest", **TREE},
        "app.queries.tree.forest:random_forest",
    ),
    "tree, forest of private splits": (
        {"kind": "tree", "algorithm": "forest", "splits": "private", "trees": 2, **TREE},
        "app.queries.tree.forest:grown_forest",
    ),
    "tree, naive_bayes": (
        {"kind": "tree", "algorithm": "naive_bayes", **TREE},
        "app.queries.tree.naive_bayes:learn",
    ),
    "distance": ({"kind": "distance"}, "app.queries.distance.body:learn"),
    "clustering": ({"kind": "clustering", "clusters": 2}, "app.queries.clustering.body:cluster"),
    "table": ({"kind": "table", "by": ["sky"]}, "app.queries.table.body:TablePlan"),
    **{
        f"statistic, {mechanism}": (
            {"kind": "statistic", "mechanism": mechanism, **statistic},
            f"mechanisms.statistics:MECHANISMS.{mechanism}",
        )
        for mechanism, statistic in {
            "laplace": {"statistic": "count"},
            "exponential": {"statistic": "median", "attribute": "heat"},
        }.items()
    },
    "statistic, smooth_sensitivity": (
        {
            "kind": "statistic",
            "statistic": "triangles",
            "mechanism": "smooth_sensitivity",
            "delta": "0.001",
        },
        "mechanisms.statistics:MECHANISMS.smooth_sensitivity",
    ),
}
ON_GRAPHS = {"selection of nodes", "statistic, smooth_sensitivity"}
CASES = [
    (name, relation, people)
    for name in ENTRIES
    for relation in ([NeighbouringRelation.EDGE] if name in ON_GRAPHS else [ADD_REMOVE, REPLACE])
    for people in (1, 3)
]
LEVELS = {"sky": ("sun", "rain", "fog"), "coat": ("yes", "no"), "kind": ("a", "b")}


def query_of(body: dict[str, Any]) -> Query:
    parsed: Query = TypeAdapter[Any](AnyQuery).validate_json(json.dumps(body))
    return parsed


class Entered(Exception):
    """Raised on entry of a mechanism, with the dataset and the loss that it received."""

    def __init__(self, dataset: Dataset, loss: PrivacyLoss) -> None:
        self.dataset, self.loss = dataset, loss


def spied(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the mechanism report its arguments instead of running."""

    def spy(*args: Any, **named: Any) -> Never:
        values = [*args, *named.values()]
        values += [value.loss for value in values if isinstance(value, QueryContext)]
        (loss,) = (value for value in values if isinstance(value, PrivacyLoss))
        datasets = [value for value in values if isinstance(value, Dataset)]
        datasets += [value.dataset for value in values if hasattr(value, "dataset")]
        raise Entered(datasets[0], loss)

    module, _, name = where.partition(":")
    if name.startswith("MECHANISMS."):
        monkeypatch.setattr(type(MECHANISMS[name.partition(".")[2]]), "answer", spy)
    else:
        monkeypatch.setattr(importlib.import_module(module), name, spy)


def dataset_of(name: str, relation: NeighbouringRelation, people: int) -> Dataset:
    if name in ON_GRAPHS:
        return Dataset("g", relation, GraphDomain(6, 5), people)
    replaced = relation is REPLACE
    domain = TableDomain(
        attributes=(
            *(CategoricalAttribute(one, values) for one, values in LEVELS.items()),
            NumericAttribute("heat", 0.0, 40.0, (0.0, 20.0, 40.0)),
        ),
        class_attribute="kind",
        rows=60 if replaced else None,
        max_rows=None if replaced else 60,
        min_rows=0 if replaced else 10,
    )
    return Dataset("t", relation, domain, people)


def test_every_kind_is_here() -> None:
    named = {name.partition(",")[0].partition(" ")[0] for name in ENTRIES}
    assert named == QUERY_KINDS.keys()
    assert {f"tree, {algorithm}" for algorithm in ALGORITHMS} <= ENTRIES.keys()


@pytest.mark.parametrize(("name", "relation", "people"), CASES)
def test_steps_add_up_and_the_mechanism_runs_at_the_converted_part(
    name: str, relation: NeighbouringRelation, people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, where = ENTRIES[name]
    query, dataset = query_of(body), dataset_of(name, relation, people)
    charge = PrivacyLoss(10 * NANO + 1, query.delta_atto())
    assert query.price(dataset, charge).total() == charge
    spied(where, monkeypatch)
    none: Any = None
    with pytest.raises(Entered) as entered:
        query.compute(QueryContext(none, dataset, charge, none, none))
    seen, loss = entered.value.dataset, entered.value.loss
    # The loss is divided among the records of a person. A mechanism that counts a replacement as
    # two changes gets a dataset under add/remove.
    converted = member_loss(charge, people)
    if seen.neighbouring is not dataset.neighbouring:
        assert (dataset.neighbouring, seen.neighbouring) == (REPLACE, ADD_REMOVE)
        converted = member_loss(converted, 2)
        people *= 2
    assert loss == converted
    assert group_loss(loss, people).fits(charge)
    assert people == 1 or loss != charge


#: For kinds of query that make one release, the bound on ρ as a function of the ε of one record.
RHO: dict[str, Callable[[Fraction], RhoBound]] = {
    "selection": Pure,
    "top_k": lambda ε: BoundedRange(ε / 2, 2),
    "top_k, subset": BoundedRange,
    "selection of nodes": Pure,
    "statistic, exponential": BoundedRange,
    "statistic, laplace": lambda ε: LaplaceNoise(rate_at_most(ε).exponent(), 1, 1),
    "statistic, smooth_sensitivity": Pure,
}


@pytest.mark.parametrize(("name", "relation", "people"), CASES)
def test_rho_is_that_of_the_change_of_a_person(
    name: str, relation: NeighbouringRelation, people: int
) -> None:
    """Danger: the ρ of one record, times the records of a person, is far too little."""
    query, dataset = query_of(ENTRIES[name][0]), dataset_of(name, relation, people)
    charge = PrivacyLoss(300_000_000, query.delta_atto())
    price = query.price(dataset, charge)
    assert 0 < price.rho_femto() <= pure_femto(charge.epsilon_nano) + len(price.steps)
    released = [step for step in price.steps if step.bound is not NO_RELEASE]
    halved = ("tree, id3", "tree, forest of private splits")
    doubled = name in halved and relation is REPLACE
    assert {step.members for step in released} == {2 * people if doubled else people}
    if (formula := RHO.get(name)) is not None:
        share = member_loss(charge, people).epsilon()
        assert price.rho_femto() == formula(share).femto(people)


def test_fewer_tables_than_expected_cost_no_more_than_was_charged() -> None:
    """Danger: contexts that share tables leave fewer of them, each at a larger share of ε."""
    dataset = dataset_of("distance", ADD_REMOVE, 1)
    body = {"kind": "distance", "context": "max_relevance", "context_size": 1}
    of_all = query_of({**body, "attributes": ["sky", "coat", "kind", "heat"]})
    (step,) = of_all.price(dataset, PrivacyLoss(NANO)).steps[-1:]
    assert isinstance(step.bound, LaplaceNoise)
    # Each of the four targets needs the table of its pair with one other attribute, its context.
    # Two tables suffice if each serves two targets, and then each gets half of ε.
    assert step.bound == LaplaceNoise(step.loss.epsilon() / 2, 2, 1)
    (one,) = query_of({**body, "target": "sky"}).price(dataset, PrivacyLoss(NANO)).steps[-1:]
    assert one.bound == LaplaceNoise(one.loss.epsilon(), 1, 1)


@pytest.mark.long
def test_nobody_else_converts() -> None:
    """Group privacy is imported by the conversion alone, and the conversion by every body."""
    importing: dict[str, set[Path]] = {}
    for path in [*APP.rglob("*.py"), *(APP.parent / "mechanisms").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                importing.setdefault(node.module, set()).add(path)
    parts = APP / "queries" / "parts"
    assert importing["accounting.group_privacy"] == {parts / "conversion.py"}
    computing = {
        path
        for path in (APP / "queries").rglob("*.py")
        if "def compute(" in path.read_text() and path != parts / "query.py"
    }
    assert computing <= importing["app.queries.parts.conversion"]
    assert len(computing) >= len(QUERY_KINDS) - 1  # The kind top_k uses the compute of selection.


TABLE: dict[str, Any] = {
    "kind": "table",
    "attributes": [
        *({"name": one, "kind": "categorical", "values": [*v]} for one, v in LEVELS.items()),
        {"name": "heat", "kind": "numeric", "bounds": [0, 40], "bins": 2},
    ],
    "class_attribute": "kind",
    "cap": {"epsilon": "1000", "delta": "0.5"},
}
RECORDS = "sky,coat,kind,heat\n" + "".join(
    f"{LEVELS['sky'][i % 3]},{LEVELS['coat'][i % 2]},{LEVELS['kind'][i % 2]},{i % 40}\n"
    for i in range(60)
)


def taken(step: dict[str, Any], part: str) -> Decimal:
    """The charge of a step; parallel releases touch different records and count once."""
    return Decimal(step[part]) * (step["times"] if step["composition"] == "sequential" else 1)


@pytest.mark.long
def test_the_ledger_is_charged_what_was_asked_by_every_kind(people: Service) -> None:
    registered = {
        "replaced": TABLE | {"neighbouring": "replace", "records_per_person": 3},
        "changed": TABLE
        | {"neighbouring": "add_remove", "max_rows": 60, "min_rows": 10, "records_per_person": 3},
        "joined": {"kind": "graph", "neighbouring": "edge", "nodes": {"count": 6}, "max_degree": 5}
        | {"cap": TABLE["cap"], "records_per_person": 3},
    }
    expected = {name: [Decimal(0), Decimal(0)] for name in registered}
    for name, body in registered.items():
        assert people("olga", "POST", "/v1/datasets", json={"name": name, **body}).is_success
        records = "source,target\n0,1\n1,2\n2,0\n" if name == "joined" else RECORDS
        assert people.upload("olga", name, records.encode()).status_code == 201
        limit = {"epsilon": "1000", "delta": "0.5"}
        path = f"/v1/datasets/{name}/budgets/ana"
        assert people("olga", "PUT", path, json=limit).is_success
        for kind, (query, _) in ENTRIES.items():
            if (kind in ON_GRAPHS) is not (name == "joined"):
                continue
            sent = {"dataset": name, "epsilon": "10.000000001", "query": query}
            reply = people("ana", "POST", "/v1/queries", json=sent)
            assert reply.status_code == 201, (name, kind, reply.text)
            body = reply.json()
            delta = query.get("delta", "0")
            assert (body["charge"]["epsilon"], body["charge"]["delta"]) == ("10.000000001", delta)
            for i, part in enumerate(("epsilon", "delta")):
                spent = sum(
                    Decimal(step[part])
                    * (step["times"] if step["composition"] == "sequential" else 1)
                    for step in body["steps"]
                )
                assert spent == Decimal(body["charge"][part]), (name, kind)
                expected[name][i] += spent
    for account in people("ana", "GET", "/v1/budgets").json()["items"]:
        charged = [Decimal(account["spent"][part]) for part in ("epsilon", "delta")]
        assert charged == expected[account["dataset"]]
    caps = people("otto", "GET", "/v1/ledger?limit=100").json()["items"]
    for name, amounts in expected.items():
        entries = [
            e for e in caps if (e["account"], e["dataset"], e["kind"]) == ("cap", name, "charge")
        ]
        assert [sum(Decimal(e[part]) for e in entries) for part in ("epsilon", "delta")] == amounts
