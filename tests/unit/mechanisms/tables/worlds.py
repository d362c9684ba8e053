"""A small public description, made-up rows of it, and tables of them without noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.tables.columns import TableColumns
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import TableRequest
from mechanisms.tables.tabulate import release
from tests.support.contexts import context

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
#: A privacy loss so large that the noise is 0 with near certainty.
LOUD = PrivacyLoss(10**6 * NANO)
ATTRIBUTES = (
    CategoricalAttribute("town", ("a", "b", "c"), missing="?"),
    CategoricalAttribute("sex", ("f", "m")),
    NumericAttribute("age", 0.0, 100.0, (0.0, 25.0, 50.0, 100.0)),
    NumericAttribute("height", -1.0, 3.0, (-1.0, 1.0, 3.0), missing="-"),
)


def dataset_of(relation: NeighbouringRelation = ADD_REMOVE, rows: int = 5000) -> Dataset:
    domain = TableDomain(ATTRIBUTES, max_rows=rows)
    if relation is REPLACE:
        domain = replace(domain, rows=rows, max_rows=None)
    return Dataset("people", relation, domain)


def people(rows: int = 5000, seed: int = 0) -> TableRecords:
    random = np.random.default_rng(seed)
    town, sex = (random.integers(0, size, rows).astype(np.uint8) for size in (4, 2))
    age = random.gamma(4.0, 10.0, rows).clip(0, 100).round(1)
    height = random.normal(1.0, 0.4, rows).clip(-1, 3)
    missing = random.random(rows) < 0.1
    height[missing] = 1.0
    codes = {
        "town": town,
        "sex": sex,
        "age": np.searchsorted([25.0, 50.0], age, "right").astype(np.uint8),
        "height": np.where(missing, 2, (height >= 1.0)).astype(np.uint8),
    }
    return TableRecords(codes, {"age": age, "height": height})


def request(by: Sequence[Any], aggregates: Sequence[Any], **options: Any) -> TableRequest:
    shares: tuple[Fraction | None, ...] = (None,) * len(aggregates)
    return TableRequest(tuple(by), tuple(aggregates), **{"shares": shares, **options})


def columns(
    described: TableRequest,
    records: TableRecords,
    dataset: Dataset,
    loss: PrivacyLoss = LOUD,
    randomness: Randomness | None = None,
) -> TableColumns:
    plan = TablePlan(described, dataset, loss)
    return TableColumns(plan, release(context(records, dataset, loss, randomness), plan))
