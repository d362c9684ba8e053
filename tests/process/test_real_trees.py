"""Decision trees of real tables over HTTP: every combination answers at its price, usefully."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from decimal import Decimal
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mechanisms.model.tree_shape import check_tree
from tests.process.session import Session
from tests.support.data import data_file

pytestmark = pytest.mark.data

#: For each table: a round public bound on its rows, and the class that the search separates from
#: the others.
TABLES = {
    "adult": (50_000, ">50K"),
    "nltcs": (25_000, "1"),
    "acs": (50_000, "1"),
    "mushroom": (10_000, "p"),
}
ID3 = [
    {"criterion": criterion, "sensitivity": sensitivity}
    for criterion, sensitivity in product(
        ("information_gain", "gini", "max"), ("global", "local", "flattened", "shifted")
    )
]
SEARCHES = [
    {"objective": objective, "sensitivity": sensitivity}
    for objective, sensitivity in product(("weighted_sum", "pareto"), ("global", "local"))
] + [{"objective": "front"}]
#: The number of bins into which numeric attributes are divided.
BINS = 5


#: Every run tests the table adult, which has binned numbers and categories; all others are slow
#: tests.
@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name == "adult" else [pytest.mark.slow]) for name in TABLES
    ]
)
def table(session: Session, request: pytest.FixtureRequest) -> str:
    """A ready table; registered at its first use."""
    name: str = request.param
    if session.send("GET", f"/v1/datasets/{dataset_of(name)}", session.owner).status_code == 404:
        register(session, name)
    return name


def dataset_of(table: str) -> str:
    return f"{table}_trees"


def register(session: Session, name: str) -> None:
    dataset = dataset_of(name)
    schema = json.loads(data_file(f"{name}.schema.json").read_text())
    attributes: list[dict[str, Any]] = []
    for described in schema["attributes"]:
        attribute: dict[str, Any] = {"name": described["name"], "kind": described["kind"]}
        if described["kind"] == "categorical":
            missing = schema.get("missing_value")
            attribute["values"] = [v for v in described["domain"] if v != missing]
            if missing in described["domain"]:
                attribute["missing"] = missing
        else:
            attribute |= {"bounds": described["domain"], "bins": BINS}
        attributes.append(attribute)
    public = {
        "name": dataset,
        "kind": "table",
        "neighbouring": "add_remove",
        "max_rows": TABLES[name][0],
        "attributes": attributes,
        "class_attribute": schema["class_attribute"],
        "cap": {"epsilon": "100000", "delta": "0"},
    }
    session.ok("POST", "/v1/datasets", session.owner, json=public)
    file: Path = data_file(f"{name}.csv.gz")
    session.upload(dataset, file.read_bytes(), **{"Content-Encoding": "gzip"})
    allowance = {"epsilon": "100000", "delta": "0"}
    session.ok("PUT", f"/v1/datasets/{dataset}/budgets/ada", session.owner, json=allowance)


def released_trees(session: Session, name: str, epsilon: str, **query: Any) -> list[dict[str, Any]]:
    body = {"dataset": dataset_of(name), "epsilon": epsilon, "query": {"kind": "tree", **query}}
    reply = session.ok("POST", "/v1/queries", session.analyst, json=body)
    spent = sum(
        Decimal(step["epsilon"]) * (step["times"] if step["composition"] == "sequential" else 1)
        for step in reply["steps"]
    )
    assert spent == Decimal(reply["charge"]["epsilon"]) == Decimal(epsilon)
    for tree in reply["answer"]["trees"]:
        check_tree(tree)
    trees: list[dict[str, Any]] = reply["answer"]["trees"]
    return trees


@cache
def rows(name: str) -> tuple[str, list[dict[str, Any]]]:
    """The class attribute and a fortieth of the rows, numbers beside the bins they lie in."""
    schema = json.loads(data_file(f"{name}.schema.json").read_text())
    text = gzip.decompress(data_file(f"{name}.csv.gz").read_bytes()).decode()
    sample: list[dict[str, Any]] = list(csv.DictReader(io.StringIO(text)))[::40]
    for described in schema["attributes"]:
        if described["kind"] == "numeric":
            low, high = described["domain"]
            edges = [low + (high - low) * i / BINS for i in range(BINS + 1)]
            for row in sample:
                number = float(row[described["name"]])
                bin_ = min(int((number - low) * BINS / (high - low)), BINS - 1)
                end = "]" if bin_ == BINS - 1 else ")"
                row[described["name"]] = (f"[{edges[bin_]:g},{edges[bin_ + 1]:g}{end}", number)
    return schema["class_attribute"], sample


def accuracy(name: str, tree: dict[str, Any]) -> float:
    class_attribute, sample = rows(name)
    right = 0
    for row in sample:
        node = tree
        while "label" not in node:
            value = row[node["attribute"]]
            level, number = value if isinstance(value, tuple) else (value, 0.0)
            if "branches" in node:
                node = node["branches"][level]
            elif "value" in node:
                node = node["equal"] if level == node["value"] else node["other"]
            else:
                node = node["above"] if number >= node["threshold"] else node["below"]
        right += node["label"] == row[class_attribute]
    return right / len(sample)


def majority(name: str) -> float:
    class_attribute, sample = rows(name)
    return max(Counter(row[class_attribute] for row in sample).values()) / len(sample)


@pytest.mark.parametrize("choice", ID3, ids=lambda choice: "-".join(choice.values()))
def test_id3_is_grown(session: Session, table: str, choice: dict[str, Any]) -> None:
    released_trees(session, table, "0.1", algorithm="id3", max_depth=3, **choice)
    (tree,) = released_trees(session, table, "1000", algorithm="id3", max_depth=3, **choice)
    # At ε = 1000 the noise is negligible, so the tree is no worse than the commonest label.
    assert accuracy(table, tree) >= majority(table) - 0.01


def test_a_grown_tree_knows_more_than_the_commonest_label(session: Session, table: str) -> None:
    (tree,) = released_trees(session, table, "10", algorithm="id3", max_depth=3, criterion="gini")
    expected = {"adult": 0.80, "nltcs": 0.80, "acs": 0.92, "mushroom": 0.95}[table]
    # Without noise the trees of these tables have accuracies of 0.82, 0.83, 0.95 and 0.99. The
    # sample of rows moves them by up to one point.
    assert accuracy(table, tree) > expected


@pytest.mark.parametrize("choice", SEARCHES, ids=lambda choice: "-".join(choice.values()))
def test_the_search_answers(session: Session, table: str, choice: dict[str, Any]) -> None:
    positive = TABLES[table][1]
    sizes = {"population": 40, "selected": 8, "outputs": 2}
    common = {"algorithm": "evolutionary", "positive_class": positive, **sizes}
    released_trees(session, table, "0.1", **common, **choice)
    trees = released_trees(session, table, "100", **common, **choice)
    assert len(trees) == 2
    for tree in trees:
        assert 0 <= accuracy(table, tree) <= 1
