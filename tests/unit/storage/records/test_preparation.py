"""From a file to a prepared version and back, whole or not at all."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from mechanisms.kernels.graphs.memory import preparation_memory
from mechanisms.kernels.graphs.preparation import GRAPH_COLUMNS, preparation_work
from mechanisms.model.domains import Dataset, Domain, NeighbouringRelation, PrefixDomain
from mechanisms.model.executor import Inline
from mechanisms.model.records import GraphRecords, PrefixRecords, TableRecords
from storage.errors import InvalidRecords, StorageError
from storage.files.arrays import open_arrays, write_arrays
from storage.files.manifest import DamagedFolder, check_files, read_manifest
from storage.ingest import UploadLimits
from storage.records.preparation import TABLES, open_records, prepare_upload
from tests.support.uploads import AGE, SEX, edges_csv, file_of, graph_domain, table_domain

EDGE, REPLACE = NeighbouringRelation.EDGE, NeighbouringRelation.REPLACE


def prepared(
    path: Path,
    domain: Domain,
    relation: NeighbouringRelation = EDGE,
    limits: UploadLimits | None = None,
    shares: list[float] | None = None,
) -> tuple[Path, int | None]:
    folder = path.with_name("version")
    rows = prepare_upload(
        path,
        media_type="text/csv",
        gzipped=False,
        dataset=Dataset("test", relation, domain),
        folder=folder,
        executor=Inline(),
        limits=limits,
        progress=None if shares is None else shares.append,
    )
    return folder, rows


def test_a_graph(tmp_path: Path) -> None:
    graph = nx.les_miserables_graph()
    labels = sorted(graph)
    domain = graph_domain(len(labels), labels=labels)
    shares: list[float] = []
    folder, rows = prepared(file_of(tmp_path, edges_csv(graph.edges)), domain, shares=shares)
    assert rows is None
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    records = open_records(folder, domain)
    assert isinstance(records, GraphRecords)
    assert set(records.columns) == set(GRAPH_COLUMNS)
    assert (records.indptr.dtype, records.indices.dtype) == (np.int64, np.int32)
    degrees = records.columns["degree"]
    assert degrees.tolist() == [graph.degree[name] for name in labels]
    triangles = nx.triangles(graph)
    assert records.columns["inner_edges"].tolist() == [triangles[name] for name in labels]


def test_a_table(tmp_path: Path) -> None:
    path = file_of(tmp_path, "sex,age\nMale,30\nFemale,120\n")
    for relation, rows in ((REPLACE, 2), (NeighbouringRelation.ADD_REMOVE, None)):
        domain = table_domain(SEX, AGE)
        folder, public_rows = prepared(path, domain, relation)
        assert public_rows == rows
        records = open_records(folder, domain)
        assert isinstance(records, TableRecords)
        assert {name: codes.tolist() for name, codes in records.codes.items()} == {
            "sex": [1, 0],
            "age": [2, 9],
        }
        assert records.values["age"].tolist() == [30.0, 120.0]
        assert list(records.values) == ["age"]
        folder.rename(tmp_path / str(relation))


def test_stored_tables_count_the_rows_and_are_private_arrays_like_the_others(
    tmp_path: Path,
) -> None:
    path = file_of(tmp_path, "sex,age\nMale,30\nFemale,120\nMale,31\n")
    domain = table_domain(SEX, AGE)
    folder, _ = prepared(path, domain, REPLACE)
    records = open_records(folder, domain)
    assert isinstance(records, TableRecords)
    assert records.tables["sex",].tolist() == [1, 2]
    assert records.tables["sex", "age"][:, [2, 9]].tolist() == [[0, 1], [2, 0]]
    assert {names: int(table.sum()) for names, table in records.tables.items()} == {
        ("sex",): 3,
        ("age",): 3,
        ("sex", "age"): 3,
    }
    assert not any(table.flags.writeable for table in records.tables.values())
    (entry,) = [one for one in read_manifest(folder).arrays if one.name == TABLES]
    content = bytearray((folder / entry.file).read_bytes())
    content[-8] ^= 1
    (folder / entry.file).write_bytes(content)
    with pytest.raises(DamagedFolder):
        check_files(folder)


def test_a_folder_of_an_earlier_version_opens_with_the_same_tables(tmp_path: Path) -> None:
    path = file_of(tmp_path, "sex,age\nMale,30\nFemale,120\nMale,31\n")
    domain = table_domain(SEX, AGE)
    folder, _ = prepared(path, domain, REPLACE)
    kind, arrays = open_arrays(folder, "table")
    flat = arrays.pop(TABLES)
    earlier, wrong = tmp_path / "earlier", tmp_path / "wrong"
    write_arrays(earlier, kind, arrays)
    records, expected = open_records(earlier, domain), open_records(folder, domain)
    assert isinstance(records, TableRecords)
    assert isinstance(expected, TableRecords)
    assert records.tables.keys() == expected.tables.keys()
    for names, table in records.tables.items():
        assert table.tolist() == expected.tables[names].tolist()
        assert not table.flags.writeable
    write_arrays(wrong, kind, {**arrays, TABLES: flat[:-1]})
    with pytest.raises(DamagedFolder):
        open_records(wrong, domain)


def test_a_graph_of_an_earlier_version_opens_with_the_same_columns(tmp_path: Path) -> None:
    domain = graph_domain(5)
    folder, _ = prepared(file_of(tmp_path, edges_csv([(0, 1), (1, 2), (0, 2), (2, 3)])), domain)
    kind, arrays = open_arrays(folder, "graph")
    late = [arrays.pop(f"column:{name}").tolist() for name in ("core_number", "h_index")]
    assert late == [[2, 2, 2, 1, 0], [2, 2, 2, 1, 0]]
    earlier = tmp_path / "earlier"
    write_arrays(earlier, kind, arrays)
    records, expected = open_records(earlier, domain), open_records(folder, domain)
    assert isinstance(records, GraphRecords)
    assert isinstance(expected, GraphRecords)
    assert records.columns.keys() == expected.columns.keys()
    for name, column in records.columns.items():
        assert column.tolist() == expected.columns[name].tolist()
        assert not column.flags.writeable


def test_a_prefix(tmp_path: Path) -> None:
    domain = PrefixDomain((1.0, 2.0))
    folder, _ = prepared(file_of(tmp_path, "cutoff\n1\n"), domain, NeighbouringRelation.PREFIX)
    assert open_records(folder, domain) == PrefixRecords(1)


def test_graphs_without_edges(tmp_path: Path) -> None:
    for nodes in (1, 5):
        domain = graph_domain(nodes)
        folder, _ = prepared(file_of(tmp_path, "source,target\n"), domain)
        records = open_records(folder, domain)
        assert isinstance(records, GraphRecords)
        assert records.columns["degree"].tolist() == [0] * nodes
        folder.rename(tmp_path / f"v{nodes}")


def test_the_preparation_limit_is_exact(tmp_path: Path) -> None:
    path = file_of(tmp_path, edges_csv(nx.complete_graph(9).edges))
    domain = graph_domain(9)
    records = open_records(prepared(path, domain)[0], domain)
    assert isinstance(records, GraphRecords)
    work = preparation_work(records.indptr, records.indices)
    path.with_name("version").rename(tmp_path / "first")
    with pytest.raises(InvalidRecords) as caught:
        prepared(path, domain, limits=UploadLimits(preparation_work=work - 1))
    assert [type for _, type, _ in caught.value.errors] == ["preparation_limit"]
    assert not path.with_name("version").exists()
    prepared(path, domain, limits=UploadLimits(preparation_work=work))


def test_what_does_not_fit_into_memory_is_refused_with_what_it_takes(tmp_path: Path) -> None:
    path = file_of(tmp_path, edges_csv(nx.complete_graph(9).edges))
    needed = preparation_memory(9, 36, workers=1, parts=1)
    with pytest.raises(InvalidRecords) as caught:
        prepared(path, graph_domain(9), limits=UploadLimits(memory_bytes=needed - 1))
    [(place, kind, message)] = caught.value.errors
    assert (place, kind) == (("upload",), "memory_limit")
    assert f"{needed} bytes" in message
    assert not path.with_name("version").exists()
    prepared(path, graph_domain(9), limits=UploadLimits(memory_bytes=needed))
    # If the nodes alone do not fit into memory, the edge list is not read. Its content is invalid
    # here, and no error says so.
    path.with_name("version").rename(tmp_path / "first")
    path.write_text("rubbish")
    with pytest.raises(InvalidRecords) as caught:
        prepared(path, graph_domain(10**6), limits=UploadLimits(memory_bytes=10**8))
    assert [kind for _, kind, _ in caught.value.errors] == ["memory_limit"]


def test_a_refusal_leaves_nothing(tmp_path: Path) -> None:
    files = [edges_csv([(0, 1), (1, 0)]), "rubbish", "", edges_csv([(0, 10**6)])]
    for content in files:
        path = file_of(tmp_path, content)
        before = set(tmp_path.iterdir())
        with pytest.raises(StorageError):
            prepared(path, graph_domain())
        assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_progress_may_stop_the_work(tmp_path: Path, share: float) -> None:
    class Cancelled(Exception):
        pass

    # With share 0 this exception stops the reading of the file, with 0.1 the preparation.
    def cancel(done: float) -> None:
        if done >= share:
            raise Cancelled

    path = file_of(tmp_path, edges_csv(nx.complete_graph(9).edges))
    with pytest.raises(Cancelled):
        prepare_upload(
            path,
            media_type="text/csv",
            gzipped=False,
            dataset=Dataset("test", EDGE, graph_domain(9)),
            folder=tmp_path / "version",
            executor=Inline(),
            progress=cancel,
        )
    assert list(tmp_path.iterdir()) == [path]
