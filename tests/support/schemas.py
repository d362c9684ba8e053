"""The schemas of the real tables: as registration bodies, and as columns in plain numpy."""

from __future__ import annotations

import csv
import gzip
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.support.data import data_file

#: The number of bins of equal width for each numeric attribute.
BINS = 10


@dataclass(frozen=True)
class RealTable:
    """A table of the data folder; ``cells`` are texts by attribute."""

    name: str
    schema: dict[str, Any]
    content: bytes
    cells: dict[str, NDArray[Any]]

    @classmethod
    def read(cls, name: str) -> RealTable:
        """Skips the test, saying why, when the table is absent."""
        schema = json.loads(data_file(f"{name}.schema.json").read_text("utf-8"))
        content = data_file(f"{name}.csv.gz").read_bytes()
        rows = csv.reader(gzip.decompress(content).decode("utf-8").splitlines())
        header = next(rows)
        columns = zip(*rows, strict=True)
        return cls(name, schema, content, dict(zip(header, map(np.array, columns), strict=True)))

    @property
    def class_attribute(self) -> str:
        return str(self.schema["class_attribute"])

    @property
    def others(self) -> list[str]:
        """All attributes but the class."""
        names = [attribute["name"] for attribute in self.schema["attributes"]]
        return [name for name in names if name != self.class_attribute]

    def registration(self, relation: str) -> dict[str, Any]:
        """The body that registers the table, with a bound on its rows or their public number."""
        rows = self.schema["rows"]
        bound = {"max_rows": 100_000} if relation == "add_remove" else {"rows": rows}
        return {
            "name": self.name,
            "kind": "table",
            "neighbouring": relation,
            **bound,
            "attributes": [registered(attribute) for attribute in self.schema["attributes"]],
            "class_attribute": self.class_attribute,
            "cap": {"epsilon": "10000000", "delta": "0"},
        }

    def levels(self, name: str) -> NDArray[np.int64]:
        """The level of every cell: the number of its text, or of the bin of its number."""
        (attribute,) = (a for a in self.schema["attributes"] if a["name"] == name)
        cells = self.cells[name]
        if attribute["kind"] == "categorical":
            return np.unique(cells, return_inverse=True)[1]
        edges = np.linspace(*attribute["domain"], BINS + 1)
        return np.clip(np.searchsorted(edges, cells.astype(float), "right") - 1, 0, BINS - 1)

    def counts(self, name: str) -> NDArray[np.int64]:
        """Level × class counts of one attribute."""
        levels, classes = self.levels(name), self.levels(self.class_attribute)
        table = np.zeros((levels.max() + 1, classes.max() + 1), dtype=np.int64)
        np.add.at(table, (levels, classes), 1)
        return table


def registered(attribute: dict[str, Any]) -> dict[str, Any]:
    """One attribute of a schema as a registration writes it."""
    body: dict[str, Any] = {"name": attribute["name"], "kind": attribute["kind"]}
    if attribute["kind"] == "categorical":
        body["values"] = attribute["domain"]
    else:
        body |= {"bounds": attribute["domain"], "bins": BINS}
    if "missing_value" in attribute:
        body["missing"] = attribute["missing_value"]
    return body
