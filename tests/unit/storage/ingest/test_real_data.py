"""The real graphs and tables are read as their manifest and schemas describe them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from mechanisms.model.domains import Attribute, CategoricalAttribute, GraphDomain, NumericAttribute
from storage.ingest import CodedGraph, CodedTable
from tests.support.data import data_file
from tests.support.uploads import edges_csv, file_of, read, refusals, table_domain

pytestmark = pytest.mark.data

GRAPHS = [("github", 37_700), ("enron", 36_692), ("gowalla", 196_592)]


def largest_degree(graph: CodedGraph) -> int:
    return int(np.diff(graph.indptr).max())


@pytest.mark.parametrize(("name", "nodes"), GRAPHS)
def test_numbered_graphs(name: str, nodes: int) -> None:
    path = data_file(f"{name}.edges.csv.gz")
    counted = json.loads(data_file("manifest.json").read_bytes())["files"][path.name]
    bound = counted["max_degree"]
    coded = read(path, GraphDomain(nodes, bound), gzipped=True)
    assert isinstance(coded, CodedGraph)
    assert len(coded.indices) == 2 * counted["edges"]
    assert largest_degree(coded) == bound
    assert refusals(path, GraphDomain(nodes, bound - 1), gzipped=True)[0][1] == "degree"


@pytest.mark.parametrize("prefix", ["", "author "])
def test_a_graph_with_names(tmp_path: Path, prefix: str) -> None:
    path = data_file("dblp.edges.csv.gz")
    table = pyarrow.csv.read_csv(path)
    ends = [table[name].to_numpy() for name in ("source", "target")]
    ids = np.unique(np.concatenate(ends))
    labels: Any = [f"{prefix}{id}" for id in ids] if prefix else ids.tolist()
    if prefix:
        cells = (np.char.add(prefix, end.astype(str)).tolist() for end in ends)
        path = file_of(tmp_path, edges_csv(zip(*cells, strict=True)))
    coded = read(path, GraphDomain(len(ids), 500, labels), gzipped=not prefix)
    assert isinstance(coded, CodedGraph)
    sources = np.searchsorted(ids, ends[0])
    degrees = np.bincount(np.searchsorted(ids, ends[1]), minlength=len(ids))
    assert np.array_equal(np.diff(coded.indptr), degrees + np.bincount(sources, minlength=len(ids)))
    # The arrays list every edge for both of its nodes, also the last edge of the file.
    a, b = np.searchsorted(ids, [ends[0][-1], ends[1][-1]])
    assert b in coded.indices[coded.indptr[a] : coded.indptr[a + 1]]
    assert a in coded.indices[coded.indptr[b] : coded.indptr[b + 1]]


def attributes(schema: dict[str, Any]) -> list[Attribute]:
    attributes: list[Attribute] = []
    for attribute in schema["attributes"]:
        name, domain = attribute["name"], attribute["domain"]
        missing = attribute.get("missing_value")
        if attribute["kind"] == "categorical":
            attributes.append(CategoricalAttribute(name, tuple(domain), missing))
        else:
            edges = tuple(np.linspace(domain[0], domain[1], 11).tolist())
            attributes.append(NumericAttribute(name, domain[0], domain[1], edges, missing))
    return attributes


@pytest.mark.parametrize(
    "name",
    ["acs", "adult", "adult_full", "cmc", "dermatology", "mushroom", "nltcs", "sf_salaries",
     "soybean"],
)  # fmt: skip
def test_tables(name: str) -> None:
    path, schema = (
        data_file(f"{name}.csv.gz"),
        json.loads(data_file(f"{name}.schema.json").read_bytes()),
    )
    described = attributes(schema)
    domain = table_domain(*described, max_rows=None, rows=schema["rows"])
    coded = read(path, domain, gzipped=True)
    assert isinstance(coded, CodedTable)
    assert coded.rows == schema["rows"]
    raw = pyarrow.csv.read_csv(
        path,
        convert_options=pyarrow.csv.ConvertOptions(
            column_types={a.name: pyarrow.string() for a in described}, strings_can_be_null=False
        ),
    )
    for attribute in described:
        cells = np.array(raw[attribute.name].to_pylist())
        codes = coded.codes[attribute.name]
        assert len(codes) == schema["rows"]
        assert codes.max() < len(attribute.levels)
        if isinstance(attribute, CategoricalAttribute):
            assert (np.array(attribute.levels)[codes] == cells).all()
        else:
            present = cells != attribute.missing
            numbers = coded.values[attribute.name]
            assert (numbers[present] == cells[present].astype(float)).all()
            assert (codes[~present] == len(attribute.levels) - 1).all()
