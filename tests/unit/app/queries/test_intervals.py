"""Intervals of the counts inside models hold as often as the answer says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries import QUERY
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.records import TableRecords
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness

LEVELS = ("x", "y")
DOMAIN = TableDomain(
    (CategoricalAttribute("a", LEVELS), CategoricalAttribute("class", LEVELS)),
    class_attribute="class",
    max_rows=1000,
)
DATASET = Dataset("models", NeighbouringRelation.ADD_REMOVE, DOMAIN)
#: The numbers of rows of the two classes. In both classes half of the rows have each value of the
#: attribute a.
ROWS = (600, 380)
CODES = np.repeat(np.arange(2, dtype=np.uint8), ROWS)
RECORDS = TableRecords({"a": np.arange(sum(ROWS)).astype(np.uint8) % 2, "class": CODES}, {})
LEAF = {"kind": "tree", "max_depth": 0}
BODIES: dict[str, dict[str, Any]] = {
    "leaf": LEAF,
    "leaf of a forest": {**LEAF, "algorithm": "forest", "trees": 2},
    "one cluster": {"kind": "clustering", "clusters": 1, "encoding": "one_hot"},
}


def numbers(answer: Any) -> Iterator[tuple[Any, int]]:
    """The released numbers of an answer, with the true ones."""
    for tree in answer.get("trees", ()):
        yield from zip(tree["counts"].values(), ROWS, strict=True)
    if sizes := answer.get("sizes"):
        yield {name: values[0] for name, values in sizes.items()}, sum(ROWS)


@pytest.mark.long
@pytest.mark.parametrize("name", BODIES)
def test_counts_inside_models_are_in_their_intervals(name: str) -> None:
    query = QUERY.validate_json(json.dumps(BODIES[name]))
    words, loss = SeededRandomness(4), PrivacyLoss(NANO // 10)
    inside, away = [], []
    while len(inside) < 1500:
        answer: Any = query.compute(context(RECORDS, DATASET, loss, words)).answer
        assert answer["confidence"] == 0.95
        for number, truth in numbers(answer):
            inside.append(number["low"] <= truth <= number["high"])
            away.append(number["value"] - truth)
    # If each interval holds the truth with probability 0.95, less than 0.93 of 1,500 intervals hold
    # it with probability 10⁻³, and more than 0.975 with probability 10⁻⁶.
    assert 0.93 <= np.mean(inside) <= 0.975
    assert abs(np.mean(away)) <= 5 * np.std(away) / len(away) ** 0.5
