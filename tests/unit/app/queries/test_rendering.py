"""Released trees as text, Graphviz and SVG: complete, with every text escaped."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any
from xml.etree import ElementTree

import pytest

from app.queries import FORMATS


def counts(yes: int, no: int) -> dict[str, dict[str, int]]:
    """Released counts, each with an interval of ±19."""
    pairs = (("yes", yes), ("no", no))
    return {label: {"value": n, "low": n - 19, "high": n + 19} for label, n in pairs}


GROWN: dict[str, Any] = {
    "attribute": "sex",
    "branches": {
        "f": {"label": "yes", "counts": counts(120, -3)},
        "m": {
            "attribute": "age",
            "branches": {
                "[0,50)": {"label": "no", "counts": counts(4, 80)},
                "[50,100]": {"label": "yes", "counts": counts(60, 5)},
            },
        },
    },
}
#: A leaf of a decision tree in the form that earlier versions stored.
PLAIN: dict[str, Any] = {"label": "yes", "counts": {"yes": 120, "no": -3}}
FOUND: dict[str, Any] = {
    "attribute": "age",
    "threshold": 50.0,
    "below": {
        "attribute": "town",
        "value": "a",
        "equal": {"label": "no"},
        "other": {"label": "yes"},
    },
    "above": {"label": "yes"},
}
HOSTILE: dict[str, Any] = {
    "attribute": '"];x<script>alert(1)</script>\n\x07\\',
    "branches": {"]]>&amp;\u202e": {"label": '<b>"'}, "b\nc": {"label": "x" * 500}},
}


def test_text_is_read_from_the_top() -> None:
    assert FORMATS["text"].write({"trees": [GROWN]}) == (
        "sex = f: yes  (yes 120 [101, 139], no -3 [-22, 16])\n"
        "sex = m\n"
        "│   age = [0,50): no  (yes 4 [-15, 23], no 80 [61, 99])\n"
        "│   age = [50,100]: yes  (yes 60 [41, 79], no 5 [-14, 24])\n"
    )
    assert FORMATS["text"].write({"trees": [PLAIN]}) == "yes  (yes 120, no -3)\n"
    assert FORMATS["text"].write({"trees": [FOUND, {"label": "no"}]}) == (
        "tree 1\nage < 50\n│   town = a: no\n│   town ≠ a: yes\nage ≥ 50: yes\n\ntree 2\nno\n"
    )


def test_text_has_one_line_a_branch_whatever_the_names() -> None:
    text = FORMATS["text"].write({"trees": [HOSTILE]})
    assert len(text.splitlines()) == 2
    assert "\x07" not in text
    assert "\u202e" not in text


@pytest.mark.parametrize("trees", [[GROWN], [FOUND, GROWN], [HOSTILE], [{"label": "no"}]])
def test_graphviz_has_every_node_and_edge(trees: list[Any]) -> None:
    written = FORMATS["dot"].write({"trees": trees})
    strings = r'"(?:[^"\\]|\\.)*"'
    # Without quoted texts, each line of the Graphviz output must match this simple grammar.
    for line in re.sub(strings, '""', written).splitlines():
        assert re.fullmatch(
            r"digraph trees \{|\}|  (node|edge) \[.*\];"
            r'|  n\d+( -> n\d+)? \[label=""(, style=rounded)?\];',
            line,
        ), line
    nodes = set(re.findall(r"^  (n\d+) \[", written, re.MULTILINE))
    edges = re.findall(r"^  (n\d+) -> (n\d+) ", written, re.MULTILINE)
    assert len(edges) == len(nodes) - len(trees)
    assert {end for edge in edges for end in edge} <= nodes
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg"], input=written.encode(), check=True, capture_output=True)


@pytest.mark.parametrize("trees", [[GROWN], [FOUND, GROWN], [HOSTILE], [{"label": "no"}]])
def test_a_drawing_is_plain_svg_inside_its_frame(trees: list[Any]) -> None:
    written = FORMATS["svg"].write({"trees": trees})
    root = ElementTree.fromstring(written)
    names = {element.tag.partition("}")[2] for element in root.iter()}
    assert names <= {"svg", "title", "rect", "path", "text"}
    # The content security policy of the service allows no style, script or address in a drawing.
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not attributes & {"style", "class", "href"}
    assert not any(name.startswith("on") for name in attributes)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.iter("{http://www.w3.org/2000/svg}rect"):
        box = {name: float(rect.get(name, "0")) for name in ("x", "y", "width", "height")}
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height


def test_a_drawing_shows_questions_answers_and_counts() -> None:
    root = ElementTree.fromstring(FORMATS["svg"].write({"trees": [GROWN]}))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(texts) == sorted(  # type: ignore[type-var]
        [
            "sex",
            "= f",
            "yes  (yes 120, no -3)",
            "= m",
            "age",
            "= [0,50)",
            "no  (yes 4, no 80)",
            "= [50,100]",
            "yes  (yes 60, no 5)",
        ]
    )
    boxes = [
        (float(r.attrib["x"]), float(r.attrib["y"]))
        for r in root.iter("{http://www.w3.org/2000/svg}rect")
        if "x" in r.attrib
    ]
    assert len(set(boxes)) == len(boxes) == 5
