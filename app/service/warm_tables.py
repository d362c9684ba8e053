"""A made-up table for ``warm``: read-only columns of every type that the store writes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.contingency import level_counts
from mechanisms.model.candidates import Candidates
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import Records, TableRecords
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf

ROWS = 8
DOMAIN = TableDomain(
    (
        CategoricalAttribute("class", ("a", "b")),
        CategoricalAttribute("few", ("x", "y")),
        # Codes of attributes with more than 256 levels take two bytes.
        CategoricalAttribute("many", tuple(map(str, range(300)))),
        NumericAttribute("number", 0.0, 8.0, (0.0, 4.0, 8.0)),
    ),
    max_rows=ROWS,
)


def warm_tables() -> dict[str, tuple[Records, Dataset, Candidates]]:
    """What to ask a table for, by kind of candidates."""
    records, dataset = warm_relations()[NeighbouringRelation.ADD_REMOVE]
    level_counts(records.codes["many"], 300)
    leaves = {"below": {"label": "a"}, "above": {"label": "b"}}
    trees: tuple[dict[str, Any], ...] = (
        {"attribute": "number", "threshold": 3, **leaves},
        {"attribute": "many", "value": "3", "equal": {"label": "a"}, "other": {"label": "b"}},
        {"attribute": "few", "branches": {"x": {"label": "a"}, "y": {"label": "b"}}},
    )
    kinds: tuple[Candidates, ...] = (
        Attributes(("few", "many", "number"), "class"),
        ValuesOf("few"),
        Trees(trees, "class", "a"),
    )
    return {candidates.kind: (records, dataset, candidates) for candidates in kinds}


def warm_relations() -> dict[NeighbouringRelation, tuple[TableRecords, Dataset]]:
    """The same table under both relations of tables."""
    numbers = np.arange(ROWS)
    codes = {
        "class": _stored(numbers % 2, np.uint8),
        "few": _stored(numbers // 4, np.uint8),
        "many": _stored(numbers, np.uint16),
        "number": _stored(numbers // 4, np.uint8),
    }
    number = _stored(numbers, np.float64)
    records = TableRecords(codes, {"number": number}, {"number": number})
    replaced = replace(DOMAIN, rows=ROWS, max_rows=None)
    domains = {
        NeighbouringRelation.ADD_REMOVE: DOMAIN,
        NeighbouringRelation.REPLACE: replaced,
    }
    return {
        relation: (records, Dataset("warm", relation, domain))
        for relation, domain in domains.items()
    }


def _stored(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """As the store maps arrays: read-only."""
    column = values.astype(dtype)
    column.flags.writeable = False
    return column
