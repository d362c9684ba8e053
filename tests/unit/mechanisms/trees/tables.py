"""Small tables for trees: columns of levels, a class, and public bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import TableRecords

ATTRIBUTES = (
    CategoricalAttribute("sex", ("f", "m")),
    CategoricalAttribute("town", ("a", "b", "c"), missing="?"),
    NumericAttribute("age", 0.0, 100.0, (0.0, 25.0, 50.0, 75.0, 100.0)),
    CategoricalAttribute("paid", ("yes", "no")),
)


def dataset(max_rows: int = 10_000, **changes: Any) -> Dataset:
    attributes = changes.pop("attributes", ATTRIBUTES)
    domain = TableDomain(attributes, "paid", max_rows=max_rows)
    return Dataset("people", NeighbouringRelation.ADD_REMOVE, domain, **changes)


def people(rows: int, seed: int = 0, noise: float = 0.0) -> TableRecords:
    """Women, and men from fifty on, are paid; ``noise`` is the share of random labels."""
    generator = np.random.default_rng(seed)
    age = generator.uniform(0, 100, rows)
    sex = generator.integers(0, 2, rows)
    paid = np.where((sex == 0) | (age >= 50), 0, 1)
    chance = generator.random(rows) < noise
    paid = np.where(chance, generator.integers(0, 2, rows), paid)
    return records(
        {"sex": sex, "town": generator.integers(0, 4, rows), "age": age // 25, "paid": paid},
        {"age": age},
    )


def records(
    codes: Mapping[str, Sequence[int] | Any], values: Mapping[str, Any] | None = None
) -> TableRecords:
    return TableRecords(
        {name: np.array(column, dtype=np.uint8) for name, column in codes.items()},
        {name: np.array(column, dtype=np.float64) for name, column in (values or {}).items()},
    )


def leaves(tree: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "label" in tree:
        return [tree]
    below = (
        tree["branches"].values()
        if "branches" in tree
        else [child for child in tree.values() if isinstance(child, Mapping)]
    )
    return [leaf for child in below for leaf in leaves(child)]


def depth(tree: Mapping[str, Any]) -> int:
    if "label" in tree:
        return 0
    below = (
        tree["branches"].values()
        if "branches" in tree
        else [child for child in tree.values() if isinstance(child, Mapping)]
    )
    return 1 + max(map(depth, below))
