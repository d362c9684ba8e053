"""The drawings: joined as the reference does it, inside the frame, every word escaped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.dashboard.templating import ENVIRONMENT
from app.queries.clustering.drawing import draw as draw_centres
from app.queries.distance.drawing import draw as draw_metrics
from app.queries.distance.drawing import heat_map
from app.queries.distance.linkage import Node, average_linkage
from app.queries.top_k.drawing import MOST
from app.queries.top_k.drawing import draw as draw_values

hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
distance = pytest.importorskip("scipy.spatial.distance")


def drawing_of(values: list[str], matrix: list[list[float]]) -> str:
    """The drawing of one metric in the page of an answer."""
    answer = {"distances": {"x": {"values": values, "matrix": matrix, "context": []}}}
    template = ENVIRONMENT.get_template("distance/answer.html")
    page = template.render(answer=answer, drawing=draw_metrics(answer))
    assert "<script>" not in page
    return page[page.index("<svg") : page.index("</svg>")]


def heights(node: Node) -> list[float]:
    if node.left is None or node.right is None:
        return []
    return [node.height, *heights(node.left), *heights(node.right)]


@given(st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_it_is_average_linkage(count: int, seed: int) -> None:
    points = np.random.default_rng(seed).random((count, 3))
    matrix = distance.squareform(distance.pdist(points))
    tree = average_linkage(matrix.tolist())
    reference = hierarchy.linkage(distance.squareform(matrix), "average")
    assert sorted(heights(tree)) == pytest.approx(reference[:, 2])
    assert sorted(tree.order()) == list(range(count))


def test_close_values_stand_together() -> None:
    matrix = [[0, 9, 1, 9], [9, 0, 9, 2], [1, 9, 0, 9], [9, 2, 9, 0]]
    assert average_linkage(matrix).order() == [0, 2, 1, 3]


def test_a_heat_map_escapes_and_stays_in_its_frame() -> None:
    values = ["<script>", "b" * 80, 'c"', "\x07"]
    matrix = [[0.0 if i == j else 1.0 for j in range(4)] for i in range(4)]
    drawn = drawing_of(values, matrix)
    assert "<script>" not in drawn
    assert "\x07" not in drawn
    assert drawn.count('class="cell"') == 16
    assert "style=" not in drawn
    shapes = heat_map(values, matrix)
    assert all(0 <= cell.x <= shapes.width - shapes.side for cell in shapes.cells)
    assert all(0 <= cell.y <= shapes.height - shapes.side for cell in shapes.cells)
    assert sorted(text for _, text in shapes.columns) == sorted(text for _, text in shapes.labels)
    assert all(0 <= x <= shapes.width for x, _ in shapes.columns)


def test_a_heat_map_has_a_legend_from_the_closest_to_the_farthest() -> None:
    shapes = heat_map(["a", "b", "c"], [[0, 0.2, 0.8], [0.2, 0, 0.8], [0.8, 0.8, 0]])
    assert [shade.text for shade in shapes.legend] == ["0", "0.2", "0.4", "0.6", "0.8"]
    opacities = [shade.opacity for shade in shapes.legend]
    assert opacities == [1, 0.75, 0.5, 0.25, 0]
    # A cell of the heat map has the shade that the legend shows for its distance.
    (opacity,) = {cell.opacity for cell in shapes.cells if cell.title == "a and b: 0.2"}
    assert opacity == opacities[1]
    assert shapes.legend[-1].x + 44 <= shapes.width
    assert shapes.legend_y + 27 <= shapes.height
    drawn = drawing_of(["a", "b"], [[0.0, 0.5], [0.5, 0.0]])
    assert drawn.count('class="shade"') == 5
    assert drawn.count("rotate(-90") == 2


def test_equal_values_are_drawn_too() -> None:
    assert "nan" not in drawing_of(["a", "b"], [[0.0, 0.0], [0.0, 0.0]]).lower()


def test_a_centre_is_named_by_the_closest_vectors() -> None:
    answer = {
        "centres": [[0.9, 0.2, 0.0, 1.2]],
        "encoding": {
            "attributes": [
                {"name": "x", "values": ["a", "b"], "vectors": [[1, 0], [0, 1]]},
                {"name": "y", "values": ["c", "d"], "vectors": [[1, 0], [0, 1]]},
            ]
        },
    }
    assert draw_centres(answer) == [{"x": "a", "y": "d"}]


def values(count: int) -> dict[str, object]:
    """An answer of so many candidates, the first of which has a name that needs escaping."""
    numbers = list(range(count, 0, -1))
    return {
        "selected": ["<script>", *map(str, range(1, count))],
        "ordered": True,
        "values": {
            "value": numbers,
            "low": [number - 30 for number in numbers],
            "high": [number + 30 for number in numbers],
        },
        "confidence": 0.95,
        "order_preserving": True,
    }


@pytest.mark.parametrize("count", [1, 5, MOST + 3])
def test_bars_stay_in_their_frame_with_their_intervals(count: int) -> None:
    chart = draw_values(values(count))
    assert chart is not None
    assert len(chart.bars) == min(count, MOST)
    for bar in chart.bars:
        assert min(bar.low, bar.start) >= 0
        assert bar.low <= bar.end <= bar.high <= chart.width
        assert bar.start == chart.zero
        assert bar.y + chart.row <= chart.height
    page = ENVIRONMENT.get_template("top_k/answer.html")
    html = page.render(answer=values(count), drawing=chart)
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert html.count('class="error"') == len(chart.bars)
    bar = chart.bars[0]
    middle, cap = bar.y + chart.row / 2, f"{bar.y + chart.row / 2 - chart.cap:.1f}v8.0"
    line = f"M{bar.low:.1f} {middle:.1f}H{bar.high:.1f}"
    assert f'd="M{bar.low:.1f} {cap}{line}M{bar.high:.1f} {cap}"' in html


def test_answers_without_values_have_no_bars_and_say_what_their_order_means() -> None:
    page = ENVIRONMENT.get_template("top_k/answer.html")
    for answer, words in [
        ({"selected": [3, 1]}, "In the order in which they were drawn"),
        (
            {"selected": [1, 3], "ordered": False, "order_preserving": False},
            "the order says nothing",
        ),
    ]:
        assert draw_values(answer) is None
        html = page.render(answer=answer, drawing=None)
        assert words in html
        assert ("do not follow" in html) == ("order_preserving" in answer)
