"""Dates in uploads: codes, days, missing cells, and what is refused where."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.model.dates import DateAttribute
from storage.ingest import CodedTable
from storage.ingest.made_up import made_up
from tests.support.uploads import SEX, file_of, read, refusals, table_domain

SEEN = DateAttribute("seen", "2023-12-15", "2024-12-31", "month", missing="never")
PARQUET = "application/vnd.apache.parquet"


def coded(path: Path, attribute: DateAttribute, media_type: str = "text/csv") -> CodedTable:
    table = read(path, table_domain(SEX, attribute), media_type)
    assert isinstance(table, CodedTable)
    return table


def test_dates_are_codes_of_bins_and_days(tmp_path: Path) -> None:
    text = (
        "seen,sex\n2023-12-15,Male\n2023-12-31,Male\n2024-01-01,Male\n2024-12-31,Male\nnever,Male\n"
    )
    table = coded(file_of(tmp_path, text), SEEN)
    assert table.codes["seen"].tolist() == [0, 0, 1, 12, 13]
    assert table.days["seen"].tolist() == [0, 16, 17, 382, 0]
    assert (str(table.codes["seen"].dtype), str(table.days["seen"].dtype)) == ("uint8", "int32")
    assert not table.values


@pytest.mark.parametrize(
    ("cell", "type"),
    [("2024-02-30", "not_a_date"), ("1.5.2024", "not_a_date"), ("20240501", "not_a_date"),
     ("45000", "not_a_date"), ("2023-12-14", "out_of_bounds"), ("2025-01-01", "out_of_bounds")],
)  # fmt: skip
def test_what_is_no_date_of_the_description_is_refused(
    tmp_path: Path, cell: str, type: str
) -> None:
    path = file_of(tmp_path, f"sex,seen\nMale,2024-01-01\nMale,{cell}\n")
    assert refusals(path, table_domain(SEX, SEEN)) == [(("line", 3, "seen"), type)]
    clamped = DateAttribute("seen", SEEN.first, SEEN.last, "month", clamp=True)
    if type == "out_of_bounds":
        assert coded(path, clamped).days["seen"].tolist() == [17, 0 if cell < "2024" else 382]
    else:
        assert refusals(path, table_domain(SEX, clamped)) == [(("line", 3, "seen"), type)]


def test_parquet_has_dates_of_its_own_and_nulls_are_missing(tmp_path: Path) -> None:
    days = pa.array([date(2024, 2, 29), None], pa.date32())
    path = tmp_path / "dates.parquet"
    pq.write_table(pa.table({"seen": days, "sex": ["Male", "Male"]}), path)
    table = coded(path, SEEN, PARQUET)
    assert table.codes["seen"].tolist() == [2, 13]
    needed = DateAttribute("seen", SEEN.first, SEEN.last, "month")
    assert refusals(path, table_domain(SEX, needed), PARQUET) == [
        (("row", 2, "seen"), "missing_value")
    ]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_made_up_dates_fit_their_description(tmp_path: Path, form: str) -> None:
    domain = table_domain(SEX, SEEN)
    path = file_of(tmp_path, made_up(domain, 300, form))  # type: ignore[arg-type]
    table = read(path, domain, "text/csv" if form == "csv" else PARQUET)
    assert isinstance(table, CodedTable)
    assert set(table.codes["seen"].tolist()) == set(range(14))
