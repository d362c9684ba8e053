"""The report of the reproduction in a real browser, from a file, on a wide and a narrow window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import files
from benchmarks.bench import Setting
from benchmarks.reproduction.report import build
from benchmarks.reproduction.runner import Run, work
from tests.process.windows import NEEDS_CHROMIUM, Chromium, Window, chromium
from tests.unit.benchmarks.small_experiments import EXPERIMENTS

pytestmark = NEEDS_CHROMIUM

#: JavaScript that returns the largest number of figures in one row of the report.
MOST_IN_A_ROW = """() => {
  const rows = [...document.querySelectorAll("figure")].map(
    figure => Math.round(figure.getBoundingClientRect().top));
  return Math.max(...rows.map(row => rows.filter(other => other === row).length));
}"""
#: JavaScript that returns the labels and legends that reach beyond their plot.
BEYOND = """() => [...document.querySelectorAll("svg")].flatMap(plot => {
  const frame = plot.getBoundingClientRect();
  return [...plot.querySelectorAll("text")].filter(text => {
    const box = text.getBoundingClientRect();
    return box.left < frame.left - 1 || box.right > frame.right + 1
      || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
  }).map(text => text.textContent.trim());
})"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with plots, a table that is wider than a telephone, and long names."""
    folder = tmp_path_factory.mktemp("report")
    setting = Setting(folder)
    chosen = [one for one in EXPERIMENTS if one.name in {"first", "later"}]
    for one in chosen:
        work(one, setting, folder)
    assert Run(chosen, folder, setting, 1, lambda _: None).all()
    result = files.read(files.place(folder, "first"))
    assert result is not None
    columns = [f"a column of some width {number}" for number in range(12)]
    result["tables"].append({"title": "wide", "columns": columns, "rows": [["cell"] * 12]})
    result["claims"][0]["seen"] = "a_word_that_has_no_place_to_break_" * 4
    files.write(files.place(folder, "first"), result)
    build(folder)
    return folder


def opened(window: Window) -> Window:
    window.go(files.REPORT)
    return window


@pytest.mark.parametrize(("width", "plots"), [(375, 1), (1280, 2)])
def test_the_report_reads_well_at_any_width(
    browser: Chromium, folder: Path, width: int, plots: int
) -> None:
    with browser.windows(f"{folder.as_uri()}/") as window:
        report = opened(window(width))
        assert report.is_fit() == []
        assert report.page.evaluate(MOST_IN_A_ROW) == plots
        assert report.page.evaluate(BEYOND) == []


def test_the_checks_see_what_is_wrong(browser: Chromium, folder: Path) -> None:
    """A legend outside its plot, two plots in a narrow row, and text wider than the window."""
    with browser.windows(f"{folder.as_uri()}/") as window:
        report = opened(window(375))
        page = report.page
        page.add_style_tag(content="svg { overflow: visible } svg text { font-size: 40px }")
        assert page.evaluate(BEYOND) != []
        page.add_style_tag(content="figure { width: 45%; display: inline-block }")
        assert page.evaluate(MOST_IN_A_ROW) > 1
        page.add_style_tag(content="td { white-space: nowrap; overflow-wrap: normal }")
        assert any("px wide" in fault for fault in report.is_fit())
