"""Tables as CSV: codes, bins, missing cells, bounds on rows, and what is refused where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.model.domains import CategoricalAttribute, NumericAttribute, PrefixDomain
from mechanisms.model.records import PrefixRecords
from storage.errors import TooLarge
from storage.ingest import CodedTable
from storage.ingest.cells import code_cells
from storage.ingest.lines import CHUNK
from tests.support.uploads import AGE, SEX, file_of, read, refusals, table_domain


def table(path: Path, *args: object, **extra: object) -> CodedTable:
    coded = read(path, *args, **extra)  # type: ignore[arg-type]
    assert isinstance(coded, CodedTable)
    return coded


def test_codes_and_numbers(tmp_path: Path) -> None:
    path = file_of(tmp_path, "age,sex\n0,Male\n119.5,Female\n120,Male\n12,Male\n11.999,Male\n")
    coded = table(path, table_domain())
    assert coded.rows == 5
    assert coded.codes["sex"].tolist() == [1, 0, 1, 1, 1]
    assert coded.codes["age"].tolist() == [0, 9, 9, 1, 0]
    assert coded.values["age"].tolist() == [0.0, 119.5, 120.0, 12.0, 11.999]
    assert set(coded.values) == {"age"}
    assert {str(codes.dtype) for codes in coded.codes.values()} == {"uint8"}


def test_missing_cells(tmp_path: Path) -> None:
    age = replace(AGE, missing="?")
    listed = CategoricalAttribute("job", ("?", "cook"), missing="?")
    extra = CategoricalAttribute("town", ("Rio",), missing="")
    path = file_of(tmp_path, "age,job,town\n?,?,\n5,cook,Rio\n")
    coded = table(path, table_domain(age, listed, extra))
    assert coded.codes["age"].tolist() == [10, 0]
    assert coded.values["age"].tolist() == [60.0, 5.0]
    assert coded.codes["job"].tolist() == [0, 1]
    assert coded.codes["town"].tolist() == [1, 0]
    for attribute in (AGE, SEX):
        path = file_of(tmp_path, f'{attribute.name}\n""\n?\nNA\nnan\n')
        assert [place[1] for place, _ in refusals(path, table_domain(attribute))] == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("cell", "number"),
    [("7", 7.0), ("+7", 7.0), ("-0", 0.0), ("7.", 7.0), (".5", 0.5), ("1.2E+1", 12.0),
     ("1e-400", 0.0), ("0012", 12.0), ("0.1", 0.1), ("119.99999999999999", 119.99999999999999)],
)  # fmt: skip
def test_numbers(tmp_path: Path, cell: str, number: float) -> None:
    values = table(file_of(tmp_path, f"age\n{cell}\n"), table_domain(AGE)).values["age"]
    assert values.tolist() == [number]
    assert not np.signbit(values[0])


@pytest.mark.parametrize(
    ("cell", "type"),
    [("nan", "not_a_number"), ("inf", "not_a_number"), ("-Infinity", "not_a_number"),
     ("1e999", "not_a_number"), ("0x10", "not_a_number"), ("1_0", "not_a_number"),
     ("1 ", "not_a_number"), ('"1,5"', "not_a_number"), ("ten", "not_a_number"),
     (".", "not_a_number"), ("1e", "not_a_number"), ("٣", "not_a_number"), ("--1", "not_a_number"),
     ("-0.0001", "out_of_bounds"), ("120.00000000000002", "out_of_bounds"),
     ("1e308", "out_of_bounds")],
)  # fmt: skip
def test_no_numbers(tmp_path: Path, cell: str, type: str) -> None:
    path = file_of(tmp_path, f"sex,age\nMale,1\nMale,{cell}\n")
    assert refusals(path, table_domain()) == [(("line", 3, "age"), type)]
    clamped = table_domain(SEX, replace(AGE, clamp=True))
    if type == "not_a_number":
        assert refusals(path, clamped) == [(("line", 3, "age"), type)]
    else:
        expected = 0.0 if cell.startswith("-") else 120.0
        assert table(path, clamped).values["age"].tolist() == [1.0, expected]


EDGES = st.lists(
    st.floats(-1e6, 1e6, allow_subnormal=False), min_size=2, max_size=12, unique=True
).map(sorted)


@given(edges=EDGES, data=st.data())
def test_bins_are_exact_at_their_edges(edges: list[float], data: st.DataObject) -> None:
    import pyarrow as pa

    inside = st.floats(edges[0], edges[-1]) | st.sampled_from(edges)
    inside |= st.sampled_from(edges[1:]).map(lambda e: max(edges[0], float(np.nextafter(e, -1e9))))
    numbers = data.draw(st.lists(inside, min_size=1, max_size=20))
    attribute = NumericAttribute("x", edges[0], edges[-1], tuple(edges))
    texts = pa.array([repr(number) for number in numbers]).dictionary_encode()
    coded = code_cells(texts, attribute)
    last = len(edges) - 2
    for number, code in zip(numbers, coded.codes.tolist(), strict=True):
        below = edges[code] <= number
        assert below
        assert number < edges[code + 1] or (code == last and number == edges[-1])
    assert not coded.faults.any()
    assert code_cells(pa.array(numbers), attribute).codes.tolist() == coded.codes.tolist()


def test_unknown_values_and_all_errors_of_a_block_in_order(tmp_path: Path) -> None:
    path = file_of(tmp_path, "sex,age\nmale,1\nFemale,x\n Male,200\n,3\nMale,4\n")
    assert refusals(path, table_domain()) == [
        (("line", 2, "sex"), "unknown_value"),
        (("line", 3, "age"), "not_a_number"),
        (("line", 4, "sex"), "unknown_value"),
        (("line", 4, "age"), "out_of_bounds"),
        (("line", 5, "sex"), "missing_value"),
    ]


def test_no_text_is_special(tmp_path: Path) -> None:
    words = ("NA", "null", "nan", "", "true", "#N/A", "-1", "1.0", "2020-01-01", '"', "a\\nb")
    attribute = CategoricalAttribute("word", words)
    cells = ['"' + word.replace('"', '""') + '"' for word in words]
    coded = table(file_of(tmp_path, "word\n" + "\n".join(cells)), table_domain(attribute))
    assert coded.codes["word"].tolist() == list(range(len(words)))


def test_bounds_on_rows(tmp_path: Path) -> None:
    three = file_of(tmp_path, "sex\nMale\nMale\nFemale\n")
    none = file_of(tmp_path, "sex\n")
    assert table(three, table_domain(SEX, max_rows=3)).rows == 3
    assert refusals(three, table_domain(SEX, max_rows=2)) == [(("line", 4), "rows")]
    assert refusals(three, table_domain(SEX, max_rows=9, min_rows=4)) == [(("upload",), "rows")]
    empty = table(none, table_domain(SEX, max_rows=9))
    assert (empty.rows, empty.codes["sex"].dtype) == (0, np.uint8)
    # Under the neighbouring relation ``replace`` the number of rows is public. The first upload
    # fixes it at any number but 0, and later uploads must have exactly as many.
    assert table(three, table_domain(SEX, max_rows=None, rows=3)).rows == 3
    assert refusals(three, table_domain(SEX, max_rows=None, rows=2)) == [(("line", 4), "rows")]
    assert refusals(three, table_domain(SEX, max_rows=None, rows=4)) == [(("upload",), "rows")]
    assert table(three, table_domain(SEX, max_rows=None)).rows == 3
    assert refusals(none, table_domain(SEX, max_rows=None)) == [(("upload",), "rows")]
    with pytest.raises(TooLarge):
        read(three, table_domain(SEX), cells=2)


def test_columns_of_a_table(tmp_path: Path) -> None:
    for header in ("sex", "sex,age,sex", "sex,age,x", "sex,sex", "age,Sex", ""):
        path = file_of(tmp_path, f"{header}\nMale,1\n")
        assert {type for _, type in refusals(path, table_domain())} == {"columns"}
    wide = file_of(tmp_path, "," * 2**20 + "\n")
    assert {type for _, type in refusals(wide, table_domain())} == {"columns"}
    odd = [replace(SEX, name=name) for name in ("a,b", 'q"q', "ü", "0", " ")]
    text = '"a,b","q""q",ü,0," "\nMale,Male,Female,Male,Male\n'
    assert table(file_of(tmp_path, text), table_domain(*odd)).codes["ü"].tolist() == [0]


def test_a_blank_line_is_no_row_of_a_one_column_table(tmp_path: Path) -> None:
    town = CategoricalAttribute("town", ("Rio",), missing="")
    assert refusals(file_of(tmp_path, "town\nRio\n\nRio\n"), table_domain(town)) == [
        (("line", 3), "csv")
    ]
    coded = table(file_of(tmp_path, 'town\nRio\n""\nRio\n'), table_domain(town))
    assert coded.codes["town"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(("levels", "dtype"), [(256, "uint8"), (257, "uint16"), (65537, "int32")])
def test_codes_take_the_smallest_type(tmp_path: Path, levels: int, dtype: str) -> None:
    many = CategoricalAttribute("many", tuple(f"v{i}" for i in range(levels)))
    path = file_of(tmp_path, f"many\nv{levels - 1}\nv0\nv255\n")
    codes = table(path, table_domain(many)).codes["many"]
    assert codes.tolist() == [levels - 1, 0, 255]
    assert codes.dtype == dtype


def test_several_blocks_are_one_table(tmp_path: Path) -> None:
    rows = 400_000
    cells = np.random.default_rng(1).integers(0, 121, rows)
    text = "age,sex\n" + "".join(f"{c},{'Male' if c % 2 else 'Female'}\n" for c in cells)
    assert len(text) > CHUNK
    path = file_of(tmp_path, text)
    coded = table(path, table_domain(max_rows=rows))
    assert (coded.values["age"] == cells).all()
    assert (coded.codes["sex"] == cells % 2).all()
    assert (coded.codes["age"] == np.minimum(cells // 12, 9)).all()
    path.write_text(text + "121,Male\n")
    assert refusals(path, table_domain(max_rows=rows + 1)) == [
        (("line", rows + 2, "age"), "out_of_bounds")
    ]


def test_a_prefix_upload_is_one_number(tmp_path: Path) -> None:
    domain = PrefixDomain((1.0, 2.5, 9.0))
    for cutoff in range(4):
        assert read(file_of(tmp_path, f"cutoff\n{cutoff}\n"), domain) == PrefixRecords(cutoff)
    for text in ("cutoff\n4\n", "cutoff\n-1\n", "cutoff\n1.0\n", "cutoff\n\n", "cutoff\n",
                 "cutoff\n1\n2\n", "cut\n1\n", "cutoff,x\n1,1\n", "", 'cutoff\n""\n'):  # fmt: skip
        assert refusals(file_of(tmp_path, text), domain)
