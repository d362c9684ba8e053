"""Tables for the benchmarks of trees: add/remove with a round public bound, and evaluation.

Labels are compared with the true classes of rows here and nowhere else: the service never says how
good a tree is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data.tables import read_table
from mechanisms.model.domains import (
    Attribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import TableRecords
from mechanisms.trees.task import Task

#: Public bounds on the rows, chosen round.
MAX_ROWS = {"adult": 50_000, "nltcs": 25_000, "acs": 50_000, "mushroom": 10_000}
LEFT_OUT = {"adult": ("fnlwgt", "education-num")}
#: The class that the evolutionary search tells from the others.
POSITIVE = {"adult": ">50K", "nltcs": "1", "acs": "1", "mushroom": "p"}


@dataclass(frozen=True)
class TreeTable:
    """Records under add/remove; numbers lie in the middle of their bins."""

    name: str
    dataset: Dataset
    records: TableRecords

    @property
    def domain(self) -> TableDomain:
        assert isinstance(self.dataset.domain, TableDomain)
        return self.dataset.domain

    @cached_property
    def task(self) -> Task:
        assert self.domain.class_attribute is not None
        return Task.of(self.dataset, None, self.domain.class_attribute)

    @cached_property
    def classes(self) -> NDArray[Any]:
        return self.records.codes[self.task.classes.name]

    @property
    def rows(self) -> int:
        return len(self.classes)

    @property
    def positive_class(self) -> str:
        return POSITIVE[self.name]

    def taken(self, rows: NDArray[Any]) -> TableRecords:
        """The records of some rows."""
        return TableRecords(
            {name: codes[rows] for name, codes in self.records.codes.items()},
            {name: values[rows] for name, values in self.records.values.items()},
        )


def tree_table(folder: Path, name: str) -> TreeTable:
    table = read_table(folder, name)
    kept = tuple(a for a in table.domain.attributes if a.name not in LEFT_OUT.get(name, ()))
    domain = TableDomain(kept, table.domain.class_attribute, max_rows=MAX_ROWS[name])
    codes = {a.name: table.records.codes[a.name] for a in kept}
    values = {a.name: _middles(a)[codes[a.name]] for a in kept if isinstance(a, NumericAttribute)}
    dataset = Dataset(name, NeighbouringRelation.ADD_REMOVE, domain)
    return TreeTable(name, dataset, TableRecords(codes, values))


def _middles(attribute: NumericAttribute) -> NDArray[np.float64]:
    edges = np.array(attribute.edges)
    middle = (attribute.lower + attribute.upper) / 2
    return np.append((edges[1:] + edges[:-1]) / 2, middle)


def accuracy(tree: Mapping[str, Any], records: TableRecords, task: Task) -> float:
    """The share of rows whose class a grown tree tells."""
    codes = {a.name: a for a in task.attributes}
    labels = {label: code for code, label in enumerate(task.labels)}
    told = np.empty(len(records.codes[task.classes.name]), np.int64)
    _tell(tree, np.arange(len(told)), records, codes, labels, told)
    return float((told == records.codes[task.classes.name]).mean())


def _tell(
    node: Mapping[str, Any],
    rows: NDArray[Any],
    records: TableRecords,
    attributes: Mapping[str, Attribute],
    labels: Mapping[str, int],
    told: NDArray[np.int64],
) -> None:
    if "label" in node:
        told[rows] = labels[node["label"]]
        return
    here = records.codes[node["attribute"]][rows]
    for code, level in enumerate(attributes[node["attribute"]].levels):
        below = rows[here == code]
        if below.size:
            _tell(node["branches"][level], below, records, attributes, labels, told)
