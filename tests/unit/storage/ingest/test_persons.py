"""Rows of persons: at most c of each are kept, and nobody else's rows have a part in which."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.model.domains import Dataset, NeighbouringRelation, TableDomain
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from storage.errors import InvalidRecords
from storage.files.manifest import DamagedFolder
from storage.ingest import CodedTable, Truncation, UploadLimits, read_records
from storage.records.preparation import open_records, prepare_upload
from tests.support.uploads import AGE, SEX, file_of, table_domain

KEY = bytes(range(32))
DOMAIN = table_domain(person="id")
#: One row of a table: a person, a sex and an age.
Row = tuple[str, str, float]


def rows_of(seed: int = 0, persons: int = 12) -> list[Row]:
    """Rows of persons with none to twenty rows each, some of them equal."""
    random = Random(seed)
    return [
        (f"person-{i}", random.choice(SEX.values), random.choice([1.0, 20.5, 70.0]))
        for i in range(persons)
        for _ in range(random.choice([0, 1, 2, 3, 20]))
    ]


def csv_of(rows: list[Row]) -> str:
    return "age,id,sex\n" + "".join(f"{age},{id},{sex}\n" for id, sex, age in rows)


def table(
    path: Path,
    most: int,
    key: bytes = KEY,
    domain: TableDomain = DOMAIN,
    media_type: str = "text/csv",
    **limits: int,
) -> CodedTable:
    coded = read_records(
        path,
        media_type=media_type,
        gzipped=False,
        domain=domain,
        limits=UploadLimits(**limits),
        persons=Truncation(most, key),
    )
    assert isinstance(coded, CodedTable)
    return coded


def rows_kept(folder: Path, rows: list[Row], most: int = 3, key: bytes = KEY) -> list[Counter[Row]]:
    """The kept rows of each person, by the persons' numbers; ``person-i`` is not in them."""
    coded = table(file_of(folder, csv_of(rows)), most, key)
    assert coded.persons is not None
    assert coded.persons.dtype == np.int32
    every: list[Counter[Row]] = []
    ends = zip(coded.persons, coded.codes["sex"], coded.values["age"], strict=True)
    for person, sex, age in ends:
        if person == len(every):
            every.append(Counter())
        assert person == len(every) - 1, "the numbers ascend from 0 without gaps"
        every[person][("", SEX.values[sex], float(age))] += 1
    return every


def rows_by_person(rows: list[Row]) -> list[Counter[Row]]:
    ids = dict.fromkeys(id for id, _, _ in rows)
    return [Counter(("", sex, age) for id, sex, age in rows if id == one) for one in ids]


@pytest.mark.parametrize("most", [1, 2, 3, 50])
def test_every_person_keeps_up_to_c_of_their_own_rows(tmp_path: Path, most: int) -> None:
    rows = rows_of()
    every, of = rows_kept(tmp_path, rows, 50), rows_kept(tmp_path, rows, most)
    assert sorted(map(repr, every)) == sorted(map(repr, rows_by_person(rows)))
    for all_rows, some in zip(every, of, strict=True):
        assert some <= all_rows
        assert some.total() == min(all_rows.total(), most)


def test_the_rows_of_others_and_the_order_of_the_file_change_nothing(tmp_path: Path) -> None:
    for seed in range(5):
        rows = rows_of(seed)
        whole = rows_kept(tmp_path, rows)
        shuffled = Random(seed).sample(rows, len(rows))
        assert rows_kept(tmp_path, shuffled) == whole
        one = rows[seed][0]
        alone = rows_kept(tmp_path, [row for row in shuffled if row[0] == one])
        rest = rows_kept(tmp_path, [row for row in rows if row[0] != one])
        place = next(i for i in range(len(whole)) if whole[:i] + whole[i + 1 :] == rest)
        assert alone == [whole[place]]


def test_different_rows_are_kept_before_repeated_ones(tmp_path: Path) -> None:
    for key in (KEY, bytes(32)):
        rows = [("a", "Male", float(age)) for age in [1] * 30 + [2] * 5 + [3]]
        for most, ages in (
            (3, {1: 1, 2: 1, 3: 1}),
            (5, {1: 2, 2: 2, 3: 1}),
            (7, {1: 3, 2: 3, 3: 1}),
        ):
            (one,) = rows_kept(tmp_path, rows, most, key)
            assert {age: count for (_, _, age), count in one.items()} == ages


def test_another_key_keeps_other_rows_and_numbers_persons_anew(tmp_path: Path) -> None:
    rows = [(f"person-{i}", "Male", float(age)) for i in range(6) for age in range(20)]
    assert rows_kept(tmp_path, rows, 3) != rows_kept(tmp_path, rows, 3, bytes(32))
    assert rows_kept(tmp_path, rows, 99) == rows_kept(tmp_path, rows, 99)
    ages = [(f"person-{i}", "Male", float(i)) for i in range(6)]
    numbered = [rows_kept(tmp_path, ages, 1, bytes([i]) * 32) for i in range(5)]
    assert len({repr(one) for one in numbered}) == 5, "the order is that of the file or of ids"


def test_bounds_count_the_kept_rows_and_tell_no_other_number(tmp_path: Path) -> None:
    rows = [(f"person-{i % 4}", "Male", float(i % 100)) for i in range(300)]
    path = file_of(tmp_path, csv_of(rows))
    assert table(path, 2, domain=table_domain(person="id", max_rows=8)).rows == 8
    with pytest.raises(InvalidRecords) as caught:
        table(path, 2, domain=table_domain(person="id", max_rows=7))
    message = "more kept rows than the 7 described"
    assert list(caught.value.errors) == [(("upload",), "rows", message)]
    with pytest.raises(InvalidRecords) as caught:
        table(path, 2, domain=table_domain(person="id", min_rows=9))
    message = "fewer rows than the 9 of the description"
    assert list(caught.value.errors) == [(("upload",), "rows", message)]


def test_a_row_without_a_person_is_refused_with_its_place(tmp_path: Path) -> None:
    path = file_of(tmp_path, "age,id,sex\n1,a,Male\n2,,Male\n3,b,Male\n4,,Robot\n")
    with pytest.raises(InvalidRecords) as caught:
        table(path, 3)
    assert [(place, kind) for place, kind, _ in caught.value.errors] == [
        (("line", 3, "id"), "missing_value"),
        (("line", 5, "id"), "missing_value"),
        (("line", 5, "sex"), "unknown_value"),
    ]


def test_parquet_and_csv_keep_the_same_rows(tmp_path: Path) -> None:
    rows = [(str(i % 7), SEX.values[i % 2], float(i % 50)) for i in range(200)]
    of_csv = table(file_of(tmp_path, csv_of(rows)), 3)
    ids, sexes, ages = zip(*rows, strict=True)
    for number, column in enumerate((pa.array(ids), pa.array(map(int, ids)))):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"id": column, "sex": sexes, "age": ages}), path)
        of_parquet = table(path, 3, media_type="application/vnd.apache.parquet")
        assert of_parquet.persons is not None
        assert of_csv.persons is not None
        assert of_parquet.persons.tolist() == of_csv.persons.tolist()
        assert of_parquet.values["age"].tolist() == of_csv.values["age"].tolist()


def test_choosing_rows_keeps_to_the_memory_limit(tmp_path: Path) -> None:
    path = file_of(tmp_path, csv_of([("a", "Male", 1.0)] * 100))
    assert table(path, 1, memory_bytes=6400).rows == 1
    with pytest.raises(InvalidRecords) as caught:
        table(path, 1, memory_bytes=6399)
    assert [kind for _, kind, _ in caught.value.errors] == ["memory_limit"]


def prepared(path: Path, key: bytes | None = KEY, most: int = 2) -> Path:
    folder = path.with_name("version")
    dataset = Dataset("test", NeighbouringRelation.ADD_REMOVE, DOMAIN, most)
    arguments = {"media_type": "text/csv", "gzipped": False, "folder": folder}
    prepare_upload(path, dataset=dataset, executor=Inline(), key=key, **arguments)  # type: ignore[arg-type]
    return folder


def test_a_version_holds_numbers_of_persons_and_neither_ids_nor_dropped_rows(
    tmp_path: Path,
) -> None:
    rows = [("alice", "Male", 1.5 + i / 64) for i in range(50)] + [("bob", "Female", 3.0)]
    folder = prepared(file_of(tmp_path, csv_of(rows)))
    records = open_records(folder, DOMAIN)
    assert isinstance(records, TableRecords)
    assert records.persons is not None
    assert sorted(np.bincount(records.persons)) == [1, 2]
    assert {name: len(array) for name, array in records.values.items()} == {"age": 3}
    assert len(records.ordered["age"]) == 3
    for file in folder.rglob("*"):
        content = file.read_bytes()
        assert b"alice" not in content
        assert b"bob" not in content


def test_persons_need_their_key_and_a_folder_that_fits(tmp_path: Path) -> None:
    path = file_of(tmp_path, csv_of([("a", "Male", 1.0)]))
    with pytest.raises(ValueError, match="need the key"):
        prepared(path, key=None)
    folder = prepared(path)
    with pytest.raises(DamagedFolder):
        open_records(folder, table_domain(SEX, AGE))
    with pytest.raises(ValueError):
        Truncation(0, KEY)
    with pytest.raises(ValueError):
        Truncation(1, b"short")
    assert KEY.hex() not in repr(Truncation(1, KEY))
    assert repr(KEY) not in repr(Truncation(1, KEY))
