"""After ``warm`` no query compiles a kernel, not even for another combination of types."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, get_args

import networkx as nx
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import mechanisms
from accounting.privacy_loss import PrivacyLoss
from app.queries import QUERY, QUERY_KINDS, QueryContext
from app.queries.parts.candidates import utilities_of
from app.queries.parts.dataset_examples import candidates_of
from app.service.warm import stored_types, warm
from mechanisms.kernels.graphs.graph import compressed_rows
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.executor import Inline
from mechanisms.model.open_domain import OpenValues
from mechanisms.model.records import GraphRecords, Records, TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.selection import SELECTORS
from tests.unit.mechanisms.kernels.oracles import edge_list


def kernels() -> Iterator[Dispatcher]:
    """Every compiled kernel of the package, where it is defined."""
    for module in pkgutil.walk_packages(mechanisms.__path__, "mechanisms."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module.name:
                yield value


def callees(kernel: Dispatcher) -> Iterator[Dispatcher]:
    """The kernels that are compiled into ``kernel``."""
    for name in kernel.py_func.__code__.co_names:
        value = kernel.py_func.__globals__.get(name)
        if isinstance(value, Dispatcher):
            yield value


def name_of(kernel: Dispatcher) -> str:
    return f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"


@pytest.fixture(scope="module")
def warmed() -> list[Dispatcher]:
    warm()
    return list(kernels())


@pytest.mark.long
def test_every_kernel_that_python_calls_is_warmed(warmed: list[Dispatcher]) -> None:
    inner = {name_of(callee) for kernel in warmed for callee in callees(kernel)}
    cold = [
        name_of(kernel)
        for kernel in warmed
        if not kernel.signatures and name_of(kernel) not in inner
    ]
    assert not cold, "app.service.warm does not reach these"


def mapped(folder: Path, name: str, array: np.ndarray) -> Any:
    """An array as the store opens it: a read-only memory map."""
    np.save(folder / f"{name}.npy", array)
    return np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r"))


def mapped_graph(folder: Path) -> tuple[GraphRecords, Dataset]:
    """A larger graph, prepared and mapped as the store does."""
    graph = nx.powerlaw_cluster_graph(300, 5, 0.5, seed=1)
    edges = edge_list(graph)
    rows = [
        mapped(folder, name, array)
        for name, array in zip(("indptr", "indices"), compressed_rows(*edges, 300), strict=True)
    ]
    columns = prepare_graph(rows[0], rows[1], Inline())
    totals = prepare_totals(rows[0], rows[1], columns["co_degree"], Inline())
    records = GraphRecords(
        rows[0],
        rows[1],
        {name: mapped(folder, name, column) for name, column in columns.items()},
        totals,
    )
    return records, Dataset("graph", NeighbouringRelation.EDGE, GraphDomain(300, 120))


def mapped_table(folder: Path, records: TableRecords) -> TableRecords:
    """A table as the store maps it."""
    return TableRecords(
        {n: mapped(folder, f"codes-{n}", c) for n, c in records.codes.items()},
        {n: mapped(folder, f"values-{n}", v) for n, v in records.values.items()},
        {n: mapped(folder, f"ordered-{n}", v) for n, v in records.ordered.items()},
        persons=None if records.persons is None else mapped(folder, "persons", records.persons),
        open_values={
            name: OpenValues(
                mapped(folder, f"content-{name}", one.content),
                mapped(folder, f"ends-{name}", one.ends),
            )
            for name, one in records.open_values.items()
        },
    )


def mapped_types(folder: Path) -> Iterator[tuple[Records, Dataset]]:
    """Records of every stored type as production opens them."""
    for records, dataset in stored_types():
        if isinstance(records, GraphRecords):
            yield mapped_graph(folder)
        elif isinstance(records, TableRecords):
            yield mapped_table(folder, records), dataset
        else:
            yield records, dataset


def test_every_stored_type_is_asked() -> None:
    request = {(type(records), dataset.neighbouring) for records, dataset in stored_types()}
    assert {type_ for type_, _ in request} == set(get_args(Records))
    assert {relation for _, relation in request} == set(NeighbouringRelation)


@pytest.mark.long
def test_production_meets_no_new_types(warmed: list[Dispatcher], tmp_path: Path) -> None:
    """Every example again, and ways of selection that no example goes."""
    before = {name_of(kernel): list(kernel.signatures) for kernel in warmed}
    for private, public in mapped_types(tmp_path):
        for kind in QUERY_KINDS.values():
            for body in kind.examples.every(public):
                ask(body, private, public)
            for body in kind.examples.gaussian(public):
                ask(body, private, public, PrivacyLoss(0, 0, 10**13, 1))
        for kind_of_candidates, candidates in candidates_of(public).items():
            names = [one.name for one in utilities_of(kind_of_candidates, public.neighbouring)]
            for body in selections(candidates, names):
                ask(body, private, public)
    assert {name_of(kernel): list(kernel.signatures) for kernel in warmed} == before


def ask(
    body: Mapping[str, Any], records: Records, dataset: Dataset, loss: PrivacyLoss | None = None
) -> None:
    query = QUERY.validate_json(json.dumps(body))
    loss = loss or PrivacyLoss(10**9, query.delta_atto())
    query.compute(QueryContext(records, dataset, loss, SystemRandomness(), Inline()))


def selections(candidates: Mapping[str, Any], names: list[str]) -> Iterator[dict[str, Any]]:
    """Every draw by every selector, of single utilities and of objectives."""
    for name, sensitivity, selector in product(names, Sensitivity, SELECTORS):
        for k, draws in ((1, "peeled"), (2, "peeled"), (2, "one_shot")):
            yield {
                "kind": "top_k",
                "k": k,
                "candidates": candidates,
                "utilities": [{"name": name}],
                "sensitivity": sensitivity.value,
                "selector": selector,
                "draws": draws,
            }
    members = [{"name": name} for name in names]
    total = {"weighted_sum": members}
    objectives: list[tuple[str, list[Any]]] = [
        ("weighted_sum", members),
        ("pareto", [total, members[0]]),
        ("pareto", [total, members[0], total]),
    ]
    for (objective, utilities), sensitivity in product(objectives, Sensitivity):
        yield {
            "kind": "top_k",
            "k": 2,
            "candidates": candidates,
            "utilities": utilities,
            "objective": objective,
            "rescore": objective == "pareto",
            "sensitivity": sensitivity.value,
            "selector": "exponential",
        }
