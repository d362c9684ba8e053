"""Tables for the benchmarks of trees: add/remove with a round public bound, and evaluation.

Labels are compared with the true classes of rows here and nowhere else: the service never says how
good a tree is.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.data.tables import BINS, Table, read_table
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import (
    Attribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.trees.id3 import Id3, grow
from mechanisms.trees.task import Task

#: Public bounds on the numbers of rows. They are round numbers that no table exceeds.
MAX_ROWS = {"adult": 50_000, "nltcs": 25_000, "acs": 50_000, "mushroom": 10_000, "cmc": 2_000}
LEFT_OUT = {"adult": ("fnlwgt", "education-num")}
#: By table, the class that the evolutionary search tells from the others.
POSITIVE = {"adult": ">50K", "nltcs": "1", "acs": "1", "mushroom": "p"}


@cache
def tree_table(folder: Path, name: str, bins: int = BINS) -> Table:
    """A real table under add/remove; numbers lie in the middle of their bins."""
    table = read_table(folder, name, bins)
    attributes = tuple(a for a in table.domain.attributes if a.name not in LEFT_OUT.get(name, ()))
    domain = TableDomain(attributes, table.domain.class_attribute, max_rows=MAX_ROWS[name])
    codes = {a.name: table.records.codes[a.name] for a in attributes}
    values = {
        a.name: _middles(a)[codes[a.name]] for a in attributes if isinstance(a, NumericAttribute)
    }
    dataset = Dataset(name, NeighbouringRelation.ADD_REMOVE, domain)
    return Table(name, dataset, TableRecords(codes, values))


def _middles(attribute: NumericAttribute) -> NDArray[np.float64]:
    edges = np.array(attribute.edges)
    middle = (attribute.lower + attribute.upper) / 2
    return np.append((edges[1:] + edges[:-1]) / 2, middle)


def grown(
    table: Table,
    records: TableRecords,
    depth: int,
    criterion: str,
    sensitivity: str,
    loss: PrivacyLoss | float,
    randomness: Randomness,
    executor: Executor,
) -> Mapping[str, Any]:
    """A private ID3 tree of some records of a table, pruned, as served, for a loss or at ε."""
    selector = SELECTORS["permute_and_flip"]
    if not isinstance(loss, PrivacyLoss):
        loss = PrivacyLoss.parse(repr(loss))
    plan = Id3(table.task, depth, criterion, Sensitivity(sensitivity), selector, True)
    return grow(QueryContext(records, table.dataset, loss, randomness, executor), plan)


def accuracy(tree: Mapping[str, Any], records: TableRecords, task: Task) -> float:
    """The share of rows whose class a grown tree tells."""
    attributes = {a.name: a for a in task.attributes}
    predicted = np.empty(len(records.codes[task.classes.name]), np.int64)
    _predict(tree, np.arange(len(predicted)), records, attributes, task.labels, predicted)
    return float((predicted == records.codes[task.classes.name]).mean())


def _predict(
    node: Mapping[str, Any],
    rows: NDArray[Any],
    records: TableRecords,
    attributes: Mapping[str, Attribute],
    labels: tuple[str, ...],
    predicted: NDArray[np.int64],
) -> None:
    if "label" in node:
        predicted[rows] = labels.index(node["label"])
        return
    here = records.codes[node["attribute"]][rows]
    for code, level in enumerate(attributes[node["attribute"]].levels):
        below = rows[here == code]
        if below.size:
            _predict(node["branches"][level], below, records, attributes, labels, predicted)
