"""Real tables for benchmarks: ``NAME.csv.gz`` with ``NAME.schema.json``, and synthetic ones.

Numeric attributes are cut into public bins of equal width, five by default. Nothing public is taken
from rows.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from mechanisms.model.domains import (
    Attribute,
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import TableRecords
from mechanisms.trees.task import Task

BINS = 5
#: By name of a synthetic table: the number of clusters, and the number of values per attribute.
SYNTHETIC = {"A": (3, 3), "B": (3, 6), "C": (6, 6), "D": (6, 12)}
#: By name of a table with a planted context: the rows of each cluster, and for each attribute that
#: follows the cluster, the cluster whose rows have a 1. Table C has two more that follow it less.
PLANTED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "A": ((5000, 5000), (0, 0, 1, 1)),
    "B": ((8000, 2000), (0, 0, 1, 1)),
    "C": ((7000, 3000), (0, 0, 1, 1)),
    "D": ((2000,) * 5, (0, 1, 2, 3, 4)),
}
#: In the two attributes of table C that follow the cluster less, this share of the cells is
#: flipped.
BLURRED = 0.35


@dataclass(frozen=True)
class Table:
    """One table: its public description and its records."""

    name: str
    dataset: Dataset
    records: TableRecords

    @property
    def domain(self) -> TableDomain:
        assert isinstance(self.dataset.domain, TableDomain)
        return self.dataset.domain

    @property
    def rows(self) -> int:
        return self.records.rows

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """All but the class attribute."""
        return tuple(a for a in self.domain.attributes if a.name != self.domain.class_attribute)

    @cached_property
    def task(self) -> Task:
        """The task of predicting the class attribute from all other attributes."""
        assert self.domain.class_attribute is not None
        return Task.of(self.dataset, None, self.domain.class_attribute)

    @property
    def classes(self) -> NDArray[Any]:
        return self.records.codes[str(self.domain.class_attribute)]

    def taken(self, rows: NDArray[Any]) -> TableRecords:
        """The records of some rows."""
        return TableRecords(
            {name: codes[rows] for name, codes in self.records.codes.items()},
            {name: values[rows] for name, values in self.records.values.items()},
        )


def read_table(folder: Path, name: str, bins: int = BINS) -> Table:
    """All rows of a real table, coded over its public domain; ``bins`` of each number."""
    schema = json.loads((folder / f"{name}.schema.json").read_text())
    names = [attribute["name"] for attribute in schema["attributes"]]
    text = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, "string"), strings_can_be_null=False
    )
    rows = pyarrow.csv.read_csv(folder / f"{name}.csv.gz", convert_options=text)
    missing = schema.get("missing_value")
    attributes, codes = [], {}
    for described in schema["attributes"]:
        cells = rows[described["name"]].to_pylist()
        is_empty = missing is None and described["kind"] != "categorical" and "" in cells
        attribute = _attribute(described, "" if is_empty else missing, bins)
        attributes.append(attribute)
        codes[attribute.name] = _codes(attribute, cells)
    domain = TableDomain(tuple(attributes), schema["class_attribute"], rows=len(rows))
    dataset = Dataset(name, NeighbouringRelation.REPLACE, domain)
    return Table(name, dataset, TableRecords(codes, {}))


def _attribute(described: dict[str, Any], missing: str | None, bins: int) -> Attribute:
    if described["kind"] == "categorical":
        return CategoricalAttribute(described["name"], tuple(described["domain"]), missing)
    low, high = map(float, described["domain"])
    edges = tuple(low + (high - low) * i / bins for i in range(bins + 1))
    return NumericAttribute(described["name"], low, high, edges, missing)


def _codes(attribute: Attribute, cells: list[str]) -> NDArray[Any]:
    if isinstance(attribute, CategoricalAttribute):
        number = {level: code for code, level in enumerate(attribute.levels)}
        return np.array([number[cell] for cell in cells], np.min_scalar_type(len(number)))
    assert isinstance(attribute, NumericAttribute)
    inner = attribute.edges[1:-1]
    empty = len(attribute.edges) - 1
    present = [cell != attribute.missing for cell in cells]
    values = [float(cell) if here else 0.0 for cell, here in zip(cells, present, strict=True)]
    bins = np.searchsorted(inner, values, side="right")
    return np.where(present, bins, empty).astype(np.uint8)


def read_salaries(folder: Path) -> NDArray[np.float64]:
    column = pyarrow.csv.read_csv(folder / "sf_salaries.csv.gz")["TotalPay"]
    return np.asarray(column.to_numpy(), np.float64)


def synthetic(name: str, noise: float, rows: int = 10_000, seed: int = 1) -> Table:
    """10 attributes and a class: every cluster has a value of its own on each attribute, and a
    share ``noise`` of all cells is uniform instead."""
    clusters, values = SYNTHETIC[name]
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, clusters, rows)
    codes = {"class": classes.astype(np.uint8)}
    for number in range(10):
        own = rng.integers(0, values, clusters)
        cells = np.where(rng.random(rows) < noise, rng.integers(0, values, rows), own[classes])
        codes[f"x{number}"] = cells.astype(np.uint8)
    levels = {key: clusters if key == "class" else values for key in codes}
    return coded(f"{name} {noise:g}", codes, levels, NeighbouringRelation.REPLACE)


def planted(name: str, noise: float, seed: int = 1) -> Table:
    """11 binary attributes and a class, the cluster, of 10,000 rows; x0 has a planted context.

    The context of x0 is all others of ``PLANTED``: they follow the cluster as x0 does, but for a
    share ``noise`` of all cells, which are turned over. All other attributes are fair coins, but
    for the two of table C that follow the cluster less.
    """
    sizes, ones = PLANTED[name]
    rng = np.random.default_rng(seed)
    classes = np.repeat(np.arange(len(sizes)), sizes)
    rows = len(classes)
    turned = [noise] * len(ones) + [BLURRED, BLURRED] * (name == "C")
    codes = {"class": classes.astype(np.uint8)}
    for number in range(11):
        if number < len(turned):
            one = (*ones, 0, 1)[number] if name == "C" else ones[number]
            cells = (classes == one) ^ (rng.random(rows) < turned[number])
        else:
            cells = rng.random(rows) < 0.5
        codes[f"x{number}"] = cells.astype(np.uint8)
    levels = {key: len(sizes) if key == "class" else 2 for key in codes}
    return coded(f"planted {name} {noise:g}", codes, levels, NeighbouringRelation.REPLACE)


def coded(
    name: str,
    codes: Mapping[str, NDArray[np.uint8]],
    levels: Mapping[str, int],
    relation: NeighbouringRelation = NeighbouringRelation.ADD_REMOVE,
) -> Table:
    """A table of categorical attributes, one of them ``class``, whose values are their codes."""
    attributes = tuple(
        CategoricalAttribute(key, tuple(map(str, range(count)))) for key, count in levels.items()
    )
    rows = len(codes["class"])
    domain = TableDomain(attributes, "class", rows=rows, max_rows=rows)
    return Table(name, Dataset(name, relation, domain), TableRecords(codes, {}))


def number_records(numbers: NDArray[np.float64]) -> TableRecords:
    """The records of one numeric attribute ``x`` of a single bin."""
    codes = np.zeros(len(numbers), np.uint8)
    return TableRecords({"x": codes}, {"x": numbers}, {"x": np.sort(numbers)})


def number_dataset(
    lower: float, upper: float, rows: int, max_rows: int, relation: NeighbouringRelation
) -> Dataset:
    """The public description of such records."""
    attribute = NumericAttribute("x", lower, upper, (lower, upper))
    return Dataset("x", relation, TableDomain((attribute,), rows=rows, max_rows=max_rows))
