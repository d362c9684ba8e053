"""Charts of tables stay in their frame, escape every word, and show what the numbers say."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from app.dashboard.templating import ENVIRONMENT
from app.queries.table.charts import MOST_BARS, column_bars, heat_map, heat_maps
from app.queries.table.drawing import draw

HOSTILE = ["<script>", "b" * 80, "\x07"]


def column(values: list[float]) -> dict[str, list[float]]:
    return {"value": values, "low": [v - 2 for v in values], "high": [v + 3 for v in values]}


def groups(by: dict[str, list[str]]) -> list[tuple[str, ...]]:
    return list(product(*by.values()))


def answer_of(by: dict[str, list[str]], values: list[float]) -> dict[str, Any]:
    return {"confidence": 0.95, "by": by, "cells": {"count": column(values)}, "noise": []}


def test_bars_and_error_bars_are_to_scale_and_inside() -> None:
    chart = column_bars("count", groups({"x": ["a", "b", "c"]}), column([10.0, -4.0, 0.0]))
    unit = (chart.bars[0].end - chart.bars[0].start) / 10
    for bar, value in zip(chart.bars, (10, -4, 0), strict=True):
        assert bar.end - bar.start == pytest.approx(abs(value) * unit)
        assert bar.low == pytest.approx(chart.zero + (value - 2) * unit)
        assert bar.high == pytest.approx(chart.zero + (value + 3) * unit)
        assert 0 <= min(bar.low, bar.start) <= max(bar.high, bar.end) <= chart.width
        assert bar.y + chart.row <= chart.height


def test_a_heat_map_has_labels_and_a_legend_from_the_least_to_the_largest() -> None:
    drawn = heat_map("count", {"x": ["a", "b"], "y": ["c", "d", "e"]}, column([1, 2, 3, 4, 5, 9]))
    assert [text for _, text in drawn.rows] == ["a", "b"]
    assert [text for _, text in drawn.columns] == ["c", "d", "e"]
    assert [one.text for one in drawn.legend] == ["1", "3", "5", "7", "9"]
    opacities = [one.opacity for one in drawn.squares]
    assert opacities == sorted(opacities)
    assert opacities[0] == drawn.legend[0].opacity
    assert opacities[-1] == drawn.legend[-1].opacity
    assert all(0 <= one.x <= drawn.width - drawn.side for one in drawn.squares)
    assert all(0 <= one.y <= drawn.height - drawn.side for one in drawn.squares)


@pytest.mark.parametrize("by", [{"x": ["a", "b"]}, {"x": ["a"], "y": ["b"]}, {}])
def test_other_tables_have_no_heat_map(by: dict[str, list[str]]) -> None:
    assert heat_maps(by, {"count": column([1.0, 2.0])}) == []


def test_equal_numbers_no_groups_and_many_cells_are_drawn_too() -> None:
    two = {"x": ["a", "b"], "y": ["c", "d"]}
    assert len({one.opacity for one in heat_map("n", two, column([3.0] * 4)).squares}) == 1
    assert [bar.label for bar in column_bars("n", groups({}), column([0.0])).bars] == ["all"]
    many = {"x": [str(i) for i in range(300)]}
    assert len(column_bars("n", groups(many), column([1.0] * 300)).bars) == MOST_BARS


def test_a_page_escapes_every_word() -> None:
    answer = answer_of({"x": HOSTILE, "<y>": HOSTILE}, [float(i) for i in range(9)])
    page = ENVIRONMENT.get_template("table/answer.html").render(answer=answer, drawing=draw(answer))
    assert "<script>" not in page
    assert "\x07" not in page[: page.index("<table")]
    assert "style=" not in page
    assert page.count("<svg") == 2
    assert page.count('class="error"') == 9
