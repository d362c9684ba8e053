"""Small prepared records and the datasets that describe them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords, PrefixRecords, TableRecords

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
RELATIONS = (ADD_REMOVE, REPLACE)
EXECUTOR = Inline()


def graph(nodes: int, edges: Iterable[tuple[int, int]]) -> GraphRecords:
    ends = np.array(list(edges), np.int32).reshape(-1, 2)
    sources, targets = (np.ascontiguousarray(ends[:, side]) for side in (0, 1))
    indptr, indices = compressed_rows(sources, targets, nodes)
    columns = prepare_graph(indptr, indices, EXECUTOR)
    totals = prepare_totals(indptr, indices, columns["co_degree"], EXECUTOR)
    return GraphRecords(indptr, indices, columns, totals)


def graph_dataset(nodes: int, max_degree: int | None = None) -> Dataset:
    degree = nodes - 1 if max_degree is None else max_degree
    return Dataset("graph", NeighbouringRelation.EDGE, GraphDomain(nodes, degree))


def table(numbers: Sequence[float]) -> TableRecords:
    """One numeric attribute ``x`` in one bin, and one categorical ``parity`` of its rows."""
    values = np.array(numbers, np.float64)
    codes = {
        "x": np.zeros(len(values), np.uint8),
        "parity": (np.arange(len(values)) % 2).astype(np.uint8),
    }
    return TableRecords(codes, {"x": values}, {"x": np.sort(values)})


def table_dataset(
    relation: NeighbouringRelation, rows: int, lower: float = 0.0, upper: float = 100.0
) -> Dataset:
    attributes = (
        NumericAttribute("x", lower, upper, (lower, upper)),
        CategoricalAttribute("parity", ("even", "odd")),
    )
    if relation is REPLACE:
        return Dataset("table", relation, TableDomain(attributes, rows=rows))
    return Dataset("table", relation, TableDomain(attributes, max_rows=100))


def prefix(cutoff: int) -> PrefixRecords:
    return PrefixRecords(cutoff)


def prefix_dataset(values: Sequence[float]) -> Dataset:
    return Dataset("prefix", NeighbouringRelation.PREFIX, PrefixDomain(tuple(values)))
