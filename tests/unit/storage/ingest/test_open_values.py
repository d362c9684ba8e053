"""Open values in uploads: codes in the order of bytes, missing cells, and searches."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.model.open_domain import OpenAttribute, OpenValues
from storage.ingest import CodedTable, open_values
from storage.ingest.open_values import OpenColumn
from tests.support.uploads import SEX, file_of, read, refusals, table_domain

CODE = OpenAttribute("code")


def coded(path: Path, attribute: OpenAttribute = CODE, media_type: str = "text/csv") -> CodedTable:
    table = read(path, table_domain(SEX, attribute), media_type)
    assert isinstance(table, CodedTable)
    return table


def listed(values: OpenValues) -> list[str]:
    return [values.text(code) for code in range(len(values))]


def test_codes_follow_the_order_of_bytes_and_not_that_of_rows(tmp_path: Path) -> None:
    text = "code,sex\nz,Male\né,Male\na,Male\nz,Male\n,Male\n"
    table = coded(file_of(tmp_path, text))
    assert listed(table.open_values["code"]) == ["", "a", "z", "é"]
    assert table.codes["code"].tolist() == [2, 3, 1, 2, 0]
    assert str(table.codes["code"].dtype) == "int32"


def test_nulls_and_long_texts(tmp_path: Path) -> None:
    path = tmp_path / "codes.parquet"
    pq.write_table(pa.table({"code": ["b", None], "sex": ["Male", "Male"]}), path)
    table = coded(path, OpenAttribute("code", "a"), "application/vnd.apache.parquet")
    assert table.codes["code"].tolist() == [1, 0]
    domain = table_domain(SEX, CODE)
    assert refusals(path, domain, "application/vnd.apache.parquet") == [
        (("row", 2, "code"), "missing_value")
    ]
    path = file_of(tmp_path, f"code,sex\n{'x' * 257},Male\n")
    assert refusals(path, domain) == [(("line", 2, "code"), "too_long")]


def test_an_empty_table_has_a_value_that_no_row_has(tmp_path: Path) -> None:
    table = coded(file_of(tmp_path, "code,sex\n"))
    assert listed(table.open_values["code"]) == [""]
    assert table.codes["code"].tolist() == []


def test_too_many_values_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_values, "MOST_VALUES", 2)
    path = file_of(tmp_path, "code,sex\na,Male\nb,Male\nc,Male\n")
    assert [type for _, type in refusals(path, table_domain(SEX, CODE))] == ["values"]


@given(st.lists(st.text(max_size=3), max_size=30), st.lists(st.text(max_size=3), max_size=5))
def test_a_search_finds_exactly_what_occurs(texts: list[str], goal: list[str]) -> None:
    column = OpenColumn(CODE)
    codes, _ = column.codes(list(texts))
    ranked, values = column.sorted(codes, None)
    occurring = listed(values)
    assert [occurring[code] for code in ranked] == texts
    listed_texts = sorted({*goal, *texts[:2]}, key=str.encode)
    doubled = values.doubled_codes(tuple(listed_texts)).tolist()
    assert doubled == sorted(doubled)
    for text, code in zip(listed_texts, doubled, strict=True):
        if text in occurring:
            assert occurring[code // 2] == text
            assert code % 2 == 0
        else:
            assert code % 2 == 1
