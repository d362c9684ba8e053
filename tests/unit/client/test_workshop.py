"""Drafts hold no cell, reports are their owner's alone, and checks follow the rules of uploads."""

from __future__ import annotations

import csv
import json
import runpy
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from app.usecases.file_check import check
from privypurse.cli import cli
from privypurse.workshop import file_check
from privypurse.workshop.draft import Draft, draft, write_report
from privypurse.workshop.table_files import as_upload, read_table
from tests.architecture.imports import ROOT

COLUMNS = ["town", "age", "seen", "note", "none"]
#: Records whose cells occur in no name, kind or key of a description. So a cell that is found in a
#: draft is a leak.
ROWS: list[list[Any]] = [
    [f"Vq{i % 3}", 7000 + i, f"19{60 + i}-03-01", "Zw odd" if i == 5 else f"{8000 + i}", ""]
    for i in range(30)
]
DESCRIPTION: dict[str, Any] = {
    "name": "survey", "kind": "table", "neighbouring": "add_remove", "max_rows": 9,
    "attributes": [
        {"name": "town", "kind": "categorical", "values": ["Aix", "Brest"]},
        {"name": "age", "kind": "numeric", "bounds": [0, 120]},
    ],
    "cap": {"epsilon": "1"},
}  # fmt: skip


def csv_file(path: Path, rows: list[list[Any]], names: list[str] = COLUMNS) -> Path:
    with path.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([names, *rows])
    return path


def parquet_file(path: Path) -> Path:
    pq.write_table(pa.table(dict(zip(COLUMNS, zip(*ROWS, strict=True), strict=True))), path)
    return path


def sqlite_file(path: Path) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute('CREATE TABLE "odd ""name" (town, age, seen, note, none)')
        connection.execute("CREATE VIEW other AS SELECT 1 AS x")
        rows = [[cell or None for cell in row] for row in ROWS]
        connection.executemany('INSERT INTO "odd ""name" VALUES (?, ?, ?, ?, ?)', rows)
    connection.close()
    return path


def drafted(source: Path, table: str | None = None, **options: Any) -> Draft:
    with read_table(str(source), table) as read:
        return draft(read, "survey", **options)


def sources(folder: Path) -> list[tuple[Path, str | None]]:
    return [
        (csv_file(folder / "raw.csv", ROWS), None),
        (parquet_file(folder / "raw.parquet"), None),
        (sqlite_file(folder / "raw.db"), 'odd "name'),
    ]


def test_no_cell_stands_in_a_draft_and_every_source_gives_the_same(tmp_path: Path) -> None:
    drafts = [drafted(*source) for source in sources(tmp_path)]
    assert all(one == drafts[0] for one in drafts)
    text = json.dumps(drafts[0].description)
    for cell in (str(cell) for row in ROWS for cell in row if cell != ""):
        assert cell not in text
    assert [one["kind"] for one in drafts[0].description["attributes"]] == [
        "categorical",
        "numeric",
        "date",
        "numeric",  # one cell in thirty that is no number does not change the column's kind
        None,
    ]
    findings = drafts[0].report["columns"]
    assert (findings[1]["smallest"], findings[1]["largest"]) == (7000.0, 7029.0)
    assert (findings[2]["first"], findings[2]["last"]) == ("1960-03-01", "1989-03-01")
    assert findings[3]["not_numeric"] == ["Zw odd"]


def test_a_draft_is_refused_until_every_null_is_decided(tmp_path: Path) -> None:
    raw = csv_file(tmp_path / "raw.csv", [["Aix", 3], ["Brest", 4]], ["town", "age"])
    description = drafted(raw).description
    decisions: list[tuple[Any, str, Any]] = [
        (description, "cap", {"epsilon": "1"}),
        (description["attributes"][0], "values", ["Aix", "Brest"]),
        (description["attributes"][1], "bounds", [0, 120]),
        (description, "max_rows", 9),
    ]
    for member, name, decision in decisions:
        findings = check(json.dumps(description).encode(), raw, media_type="text/csv")
        assert any(name in reason for reason in findings.description), findings
        assert findings.records == ()
        member[name] = decision
    assert check(json.dumps(description).encode(), raw, media_type="text/csv").description == ()


def test_the_column_of_persons_is_no_attribute(tmp_path: Path) -> None:
    raw = csv_file(tmp_path / "raw.csv", [["p1", 3], ["p1", 4], ["p2", 5]], ["id", "age"])
    description = drafted(raw, person="id").description
    assert [one["name"] for one in description["attributes"]] == ["age"]
    assert (description["person"], description["records_per_person"]) == ("id", None)
    description |= {"records_per_person": 1, "max_rows": 2, "cap": {"epsilon": "1"}}
    description["attributes"][0]["bounds"] = [0, 9]
    findings = check(json.dumps(description).encode(), raw, media_type="text/csv")
    assert (findings.description, findings.records) == ((), ())
    description["max_rows"] = 1
    [reason] = check(json.dumps(description).encode(), raw, media_type="text/csv").records
    assert reason == "more kept rows than the 1 described"


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["Aix", "23"], "is the first line a header"),
        (["town", "2024-01-01"], "is the first line a header"),
        (["Vq1", "age"], "the name of column Vq1 is also a cell of it"),
        (["town", "the age"], "column 2: a name has"),
        (["town", "town"], "the same name"),
        ([], "no first line"),
    ],
)
def test_a_first_line_that_may_be_a_record_is_refused(
    tmp_path: Path, names: list[str], reason: str
) -> None:
    raw = csv_file(tmp_path / "raw.csv", [row[:2] for row in ROWS] if names else [], names)
    if not names:
        raw.write_text("")
    with pytest.raises(ValueError, match=reason):
        drafted(raw)


def test_a_report_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "raw.report.json"
    file.write_text("an older and longer text")
    file.chmod(0o644)
    write_report(file, "new")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o600)
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "link").symlink_to(elsewhere)
    with pytest.raises(OSError, match="link"):
        write_report(tmp_path / "link", "new")
    assert not elsewhere.exists()


def test_a_table_is_chosen_from_the_listing_of_its_database(tmp_path: Path) -> None:
    file = sqlite_file(tmp_path / "raw.db")
    for table in (None, "none", 'other" WHERE 1=1 --'):
        with pytest.raises(ValueError, match='odd "name, other'), read_table(str(file), table):
            pass
    with as_upload(str(file), 'odd "name') as copy:
        assert copy.parent.stat().st_mode & 0o77 == 0
        assert copy.read_text() == csv_file(tmp_path / "same.csv", ROWS).read_text()
    assert not copy.exists()
    duck = tmp_path / "raw.duckdb"
    duck.write_bytes(bytes(8) + b"DUCK" + bytes(99))
    try:
        import duckdb  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match="pip install duckdb"), read_table(str(duck)):
            pass


def test_a_check_runs_the_rules_that_the_wheel_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rules run without the rest of the checkout, and quote no cell."""
    assert file_check.rules() == ROOT
    folder = tmp_path / "rules"
    runpy.run_path(str(ROOT / "client/setup.py"))["copy_rules"](ROOT, folder)
    monkeypatch.setattr(file_check, "rules", lambda: folder)
    (tmp_path / "d.json").write_text(json.dumps(DESCRIPTION))
    with sqlite3.connect(tmp_path / "raw.db") as connection:
        connection.execute("CREATE TABLE people (town TEXT, age)")
        rows = [("Aix", 3), (None, 4), (" Brest", "4 years"), ("Rome", ""), ("Aix", 121)]
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
    connection.close()
    refusal = file_check.check(str(tmp_path / "raw.db"), tmp_path / "d.json")
    empty = "empty cell; set `missing`, or write its text into the cell"
    assert refusal.description == []
    assert refusal.records == [
        f"line 3, column town: {empty}",
        "line 4, column town: one of the attribute's values with spaces around it",
        "line 4, column age: not a decimal number such as -1.5, without spaces or units",
        "line 5, column town: not one of the attribute's values",
        f"line 5, column age: {empty}",
        "line 6, column age: outside the attribute's bounds; `clamp` would move it inside",
    ]


def test_the_nodes_of_a_graph_come_from_their_list(tmp_path: Path) -> None:
    graph = {"name": "g", "kind": "graph", "neighbouring": "edge", "cap": {"epsilon": "1"}}
    (tmp_path / "nodes.txt").write_text("a\nb\nc\n")
    edges = csv_file(tmp_path / "edges.csv", [["a", "b"], ["a", "d"]], ["source", "target"])
    options: dict[str, Any] = {"media_type": "text/csv", "nodes": tmp_path / "nodes.txt"}
    [reason] = check(json.dumps(graph).encode(), edges, **options).records
    assert reason.startswith("line 3, column target: ")
    wide = json.dumps(graph | {"max_degree": 3}).encode()
    assert check(wide, edges, **options).description != ()
    [reason] = check(json.dumps(graph).encode(), edges, media_type="text/csv").description
    assert "--nodes" in reason


def test_the_commands_print_a_draft_and_the_reasons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv_file(tmp_path / "raw.csv", [["Aix", 3]], ["town", "age"])
    described = CliRunner().invoke(cli, ["describe", "raw.csv"])
    assert json.loads(described.stdout)["name"] == "raw"
    assert (tmp_path / "raw.report.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "d.json").write_text(json.dumps(DESCRIPTION))
    results = iter(
        [
            file_check.Refusal([], []),
            file_check.Refusal([], ["line 2: …"]),
            file_check.Refusal(["cap: …"], []),
        ]
    )
    monkeypatch.setattr("privypurse.cli.workshop.check_file", lambda *_, **__: next(results))
    for status, text in (
        (0, "raw.csv fits d.json\n"),
        (1, "line 2: …\n"),
        (2, "d.json: cap: …\n"),
    ):
        checked = CliRunner().invoke(cli, ["check", "raw.csv", "--description", "d.json"])
        assert (checked.exit_code, checked.output) == (status, text)
    assert CliRunner().invoke(cli, ["describe", "none.csv"]).exit_code == 1
