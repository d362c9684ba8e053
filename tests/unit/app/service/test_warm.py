"""After ``warm`` no query compiles a kernel, not even for another combination of types."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import mechanisms
from accounting.privacy_loss import PrivacyLoss
from app.service.warm import objectives_of, warm
from app.service.warm_tables import warm_tables
from mechanisms.kernels.graph import compressed_rows, first_duplicate
from mechanisms.kernels.preparation import prepare_graph
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset, GraphDomain, NeighbouringRelation
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords, TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.objectives import RelativeObjective
from mechanisms.selection import SELECTORS
from mechanisms.selection.top_k import select_top
from mechanisms.utilities import UTILITIES
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


def mapped_table(folder: Path, records: Any) -> TableRecords:
    """A table as the store maps it."""
    return TableRecords(
        {n: mapped(folder, f"codes-{n}", c) for n, c in records.codes.items()},
        {n: mapped(folder, f"values-{n}", v) for n, v in records.values.items()},
    )


def test_production_meets_no_new_types(warmed: list[Dispatcher], tmp_path: Path) -> None:
    before = {name_of(kernel): list(kernel.signatures) for kernel in warmed}
    graph = nx.powerlaw_cluster_graph(300, 5, 0.5, seed=1)
    edges = edge_list(graph)
    assert first_duplicate(*edges, 300) is None
    rows = [
        mapped(tmp_path, name, array)
        for name, array in zip(("indptr", "indices"), compressed_rows(*edges, 300), strict=True)
    ]
    columns = prepare_graph(rows[0], rows[1], Inline())
    records = GraphRecords(
        rows[0],
        rows[1],
        {name: mapped(tmp_path, name, column) for name, column in columns.items()},
    )
    dataset = Dataset("graph", NeighbouringRelation.EDGE, GraphDomain(300, 120))
    cases: dict[str, tuple[Any, Dataset, Any]] = {"nodes": (records, dataset, AllNodes())}
    cases |= {
        kind: (mapped_table(tmp_path, table), public, candidates)
        for kind, (table, public, candidates) in warm_tables().items()
    }
    for utility in UTILITIES.values():
        private, public, candidates = cases[utility.candidates]
        for sensitivity in Sensitivity:
            for selector in SELECTORS.values():
                for k, draws in ((1, "peeled"), (2, "peeled"), (2, "one_shot")):
                    select_top(
                        private,
                        public,
                        candidates,
                        utility,
                        sensitivity,
                        selector,
                        k,
                        draws,
                        PrivacyLoss(10**9),
                        SystemRandomness(),
                        Inline(),
                    )
    for kind, (private, public, candidates) in cases.items():
        for objective in objectives_of(kind):
            for sensitivity in Sensitivity:
                select_top(
                    private,
                    public,
                    candidates,
                    objective,
                    sensitivity,
                    SELECTORS["exponential"],
                    2,
                    "peeled",
                    PrivacyLoss(10**9),
                    SystemRandomness(),
                    Inline(),
                    isinstance(objective, RelativeObjective),
                )
    assert {name_of(kernel): list(kernel.signatures) for kernel in warmed} == before
