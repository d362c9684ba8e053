"""Parquet: the same records as CSV, and what is refused before or while it is unpacked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.model.domains import CategoricalAttribute, Domain, PrefixDomain
from mechanisms.model.records import PrefixRecords
from storage.errors import TooLarge
from storage.ingest import Coded, CodedGraph, CodedTable
from storage.ingest.parquet import ROWS
from tests.support.uploads import AGE, SEX, edges_csv, file_of, graph_domain, table_domain
from tests.support.uploads import read as read_as
from tests.support.uploads import refusals as refusals_as

PARQUET = "application/vnd.apache.parquet"


def parquet(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / f"upload-{len(list(folder.iterdir()))}"
    pq.write_table(pa.table(columns), path, **options)
    return path


def read(path: Path, domain: Domain, **limits: int) -> Coded:
    return read_as(path, domain, PARQUET, **limits)


def refusals(path: Path, domain: Domain, **limits: int) -> list[tuple[Any, str]]:
    return refusals_as(path, domain, PARQUET, **limits)


@pytest.mark.parametrize("type", ["int8", "uint16", "int32", "int64", "uint64", "string"])
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"row_group_size": 7}])
def test_the_same_graph_as_csv(tmp_path: Path, type: str, options: dict[str, Any]) -> None:
    edges = np.array(nx.gnp_random_graph(40, 0.2, seed=2).edges)
    ends = {name: pa.array(edges[:, i]).cast(type) for i, name in enumerate(("target", "source"))}
    coded = read(parquet(tmp_path, ends, **options), graph_domain(40))
    expected = read_as(file_of(tmp_path, edges_csv(edges.tolist())), graph_domain(40))
    assert isinstance(coded, CodedGraph)
    assert isinstance(expected, CodedGraph)
    assert np.array_equal(coded.indptr, expected.indptr)
    assert np.array_equal(coded.indices, expected.indices)


def test_graph_refusals_name_rows(tmp_path: Path) -> None:
    domain = graph_domain(10, 3)
    for source, target, expected in (
        ([0, 1, 2], [1, 11, 2**63], [("row", 2, "target"), ("row", 3, "target")]),
        ([0, 1, None], [1, 2, 3], [("row", 3, "source")]),
        ([0, 5], [1, 5], [("row", 2)]),
        ([0, 5, 1], [1, 6, 0], [("row", 3)]),
        ([0, 0, 0, 0], [1, 2, 3, 4], [("row", 4)]),
        (["0", "b"], ["1", "2"], [("row", 2, "source")]),
    ):
        wide = pa.uint64() if target[-1] == 2**63 else None
        columns = {"source": pa.array(source), "target": pa.array(target, wide)}
        errors = refusals(parquet(tmp_path, columns), domain)
        assert [place for place, _ in errors] == expected
    named = graph_domain(3, labels=["1", "b", "c"])
    coded = read(parquet(tmp_path, {"source": ["b", "1"], "target": ["1", "c"]}), named)
    assert isinstance(coded, CodedGraph)
    assert coded.indptr.tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize("group", [2, 100])
def test_tables(tmp_path: Path, group: int) -> None:
    year = CategoricalAttribute("year", ("2011", "2012"), missing="unknown")
    fair = CategoricalAttribute("fair", ("false", "true"))
    age = replace(AGE, missing="?")
    domain = table_domain(SEX, age, year, fair)
    columns = {
        "year": pa.array([2011, None, 2012, 2011], pa.int16()),
        "age": pa.array([12.0, None, 120.0, 0.5], pa.float32()),
        "fair": [True, False, True, True],
        "sex": pa.array(["Male", "Female", "Male", "Male"]).dictionary_encode(),
    }
    coded = read(parquet(tmp_path, columns, row_group_size=group), domain)
    assert isinstance(coded, CodedTable)
    assert coded.codes["year"].tolist() == [0, 2, 1, 0]
    assert coded.codes["age"].tolist() == [1, 10, 9, 0]
    assert coded.values["age"].tolist() == [12.0, 60.0, 120.0, 0.5]
    assert coded.codes["fair"].tolist() == [1, 0, 1, 1]
    assert coded.codes["sex"].tolist() == [1, 0, 1, 1]
    texts = {**columns, "age": ["12", "?", "120", "0.5"]}
    again = read(parquet(tmp_path, texts), domain)
    assert isinstance(again, CodedTable)
    assert again.values["age"].tolist() == coded.values["age"].tolist()


def test_table_refusals(tmp_path: Path) -> None:
    columns = {"sex": ["Male", None, "male"], "age": [float("nan"), 1.0, float("inf")]}
    assert refusals(parquet(tmp_path, columns), table_domain()) == [
        (("row", 1, "age"), "not_a_number"),
        (("row", 2, "sex"), "missing_value"),
        (("row", 3, "sex"), "unknown_value"),
        (("row", 3, "age"), "not_a_number"),
    ]
    ages = {"age": pa.array([120, 121, None, -1])}
    assert refusals(parquet(tmp_path, ages), table_domain(AGE)) == [
        (("row", 2, "age"), "out_of_bounds"),
        (("row", 3, "age"), "missing_value"),
        (("row", 4, "age"), "out_of_bounds"),
    ]
    assert refusals(parquet(tmp_path, {"age": [1, 2, 3]}), table_domain(AGE, max_rows=2)) == [
        (("row", 3), "rows")
    ]
    for extra in ({"age": [1]}, {"sex": ["Male"], "age": [1], "x": [1]}):
        assert {type for _, type in refusals(parquet(tmp_path, extra), table_domain())} == {
            "columns"
        }


def test_rows_are_counted_on_over_batches(tmp_path: Path) -> None:
    ages = np.full(3 * ROWS, 7)
    ages[-2] = 700
    for options in ({}, {"row_group_size": 1000}):
        path = parquet(tmp_path, {"age": ages}, **options)
        assert refusals(path, table_domain(AGE, max_rows=None)) == [
            (("row", 3 * ROWS - 1, "age"), "out_of_bounds")
        ]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]]),
        pa.array([{"a": 1}]),
        pa.array([b"Male"]),
        pa.array([1], pa.time32("s")),
        pa.array([1], pa.timestamp("us")),
        pa.array([1]).cast(pa.decimal128(30, 2)),
        pa.array([None], pa.null()),
    ],
)
def test_types_that_are_no_cells(tmp_path: Path, column: pa.Array) -> None:
    assert refusals(parquet(tmp_path, {"sex": column}), table_domain(SEX)) == [
        (("column", "sex"), "column_type")
    ]


def test_a_prefix(tmp_path: Path) -> None:
    domain = PrefixDomain((1.0, 2.0))
    assert read(parquet(tmp_path, {"cutoff": [2]}), domain) == PrefixRecords(2)
    assert refusals(parquet(tmp_path, {"cutoff": [3]}), domain)
    assert refusals(parquet(tmp_path, {"cutoff": pa.array([], pa.int64())}), domain)


def test_damaged_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    whole = parquet(tmp_path, {"age": rng.integers(0, 120, 5000)}).read_bytes()
    cut = [whole[:n] for n in (0, 3, 8, len(whole) // 2, len(whole) - 1)]
    for content in (*cut, b"PAR1" + b"\0" * 100 + b"PAR1", rng.bytes(10_000)):
        assert refusals(file_of(tmp_path, content), table_domain(AGE, max_rows=10**6)) == [
            (("upload",), "parquet")
        ]


def test_flipped_bytes_end_in_records_or_a_refusal(tmp_path: Path) -> None:
    from storage.errors import StorageError

    rng = np.random.default_rng(4)
    columns = {"age": rng.integers(0, 120, 3000), "sex": rng.choice(["Male", "Female"], 3000)}
    whole = parquet(tmp_path, columns, compression="snappy").read_bytes()
    refused = 0
    for _ in range(150):
        broken = bytearray(whole)
        broken[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path = tmp_path / "broken"
        path.write_bytes(broken)
        try:
            read(path, table_domain(max_rows=10**6))
        except StorageError:
            refused += 1
    assert refused > 20


def test_limits_of_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path, {"sex": ["Male" * 1000, "Female"] * 100}, use_dictionary=False)
    with pytest.raises(TooLarge):
        read(path, table_domain(SEX), decompressed_bytes=10_000)
    monkeypatch.setattr("storage.ingest.parquet.LARGEST_CHUNK", 10_000)
    with pytest.raises(TooLarge):
        read(path, table_domain(SEX))
    delta = {"sex": ["Male" * 1000] * 100}
    path = parquet(
        tmp_path, delta, use_dictionary=False, column_encoding={"sex": "DELTA_BYTE_ARRAY"}
    )
    assert refusals(path, table_domain(SEX)) == [(("upload",), "parquet")]
