"""Distances between the values of an attribute: a heat map, ordered by the dendrogram beside it."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from app.dashboard.charts.linkage import Node, average_linkage

#: More values than this are a table only: cells would be smaller than a point.
MOST = 60
TREE, LABEL, WIDTH = 110, 150, 640
LONGEST = 20


def heat_map(values: Sequence[str], matrix: Sequence[Sequence[float]]) -> Markup:
    """The drawing of a symmetric (n, n) matrix with 2 ≤ n ≤ MOST; close is dark."""
    tree = average_linkage(matrix)
    order = tree.order()
    side = min(34.0, (WIDTH - TREE - LABEL) / len(order))
    most = max(max(row) for row in matrix) or 1.0
    top = 4.0
    rows = {value: top + (place + 0.5) * side for place, value in enumerate(order)}
    parts: list[str] = []
    _branches(tree, rows, max(tree.height, 1e-12), parts)
    for value in order:
        parts.append(
            f'<text x="{TREE + 6}" y="{rows[value] + 4:.1f}">{escape(_short(values[value]))}</text>'
        )
        for place, other in enumerate(order):
            distance = matrix[value][other]
            box = (
                f'x="{TREE + LABEL + place * side:.1f}" y="{rows[value] - side / 2:.1f}" '
                f'width="{side:.1f}" height="{side:.1f}"'
            )
            said = f"{_clean(values[value])} and {_clean(values[other])}: {distance:.4g}"
            parts.append(
                f'<g><title>{escape(said)}</title><rect class="cell-ground" {box}/>'
                f'<rect class="cell" {box} fill-opacity="{1 - distance / most:.3f}"/></g>'
            )
    height = top * 2 + side * len(order)
    width = TREE + LABEL + side * len(order) + 4
    return Markup(
        f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        'aria-label="Heat map of the distances, ordered by a dendrogram; the table has the '
        f'numbers.">{"".join(parts)}</svg>'
    )


def _branches(node: Node, rows: dict[int, float], whole: float, parts: list[str]) -> float:
    """Draw a node and all below it; the height of its middle."""
    if node.left is None or node.right is None:
        return rows[node.value]
    upper, lower = (_branches(child, rows, whole, parts) for child in (node.left, node.right))
    here = _x(node.height, whole)
    first, second = (_x(child.height, whole) for child in (node.left, node.right))
    parts.append(
        f'<path class="branch" d="M{first:.1f} {upper:.1f} H{here:.1f} V{lower:.1f} '
        f'H{second:.1f}"/>'
    )
    return (upper + lower) / 2


def _x(height: float, whole: float) -> float:
    """Leaves at the labels, the root at the left edge."""
    return 4 + (TREE - 8) * (1 - height / whole)


def _clean(shown: str) -> str:
    """XML has no control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)


def _short(shown: str) -> str:
    clean = _clean(shown)
    return clean if len(clean) <= LONGEST else clean[: LONGEST - 1] + "…"
