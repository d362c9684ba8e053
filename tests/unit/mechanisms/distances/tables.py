"""A made-up table and plans over it, for the tests of distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanisms.distances.options import Context, Options
from mechanisms.distances.plan import Plan, plan
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.records import TableRecords

LEVELS = {"a": 2, "b": 3, "c": 2, "d": 3, "y": 3}
ROWS = 40


def table(relation: str, rows: int = ROWS, seed: int = 1) -> tuple[Dataset, TableRecords]:
    """Random columns; b follows y in most rows, a in some."""
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(0, size, rows).astype(np.uint8) for name, size in LEVELS.items()}
    codes["b"] = np.where(rng.random(rows) < 0.7, codes["y"], codes["b"])
    codes["a"] = np.where(rng.random(rows) < 0.4, codes["y"] > 0, codes["a"]).astype(np.uint8)
    attributes = tuple(
        CategoricalAttribute(name, tuple(map(str, range(size)))) for name, size in LEVELS.items()
    )
    domain = (
        TableDomain(attributes, rows=rows)
        if relation == "replace"
        else TableDomain(attributes, max_rows=2 * rows, min_rows=1)
    )
    return Dataset("made-up", NeighbouringRelation(relation), domain), TableRecords(codes, {})


def planned(dataset: Dataset, target: str | None = "y", **options: Any) -> Plan:
    context = Context(options.pop("context", "max_relevance"))
    return plan(dataset, Options(context, **options), target)
