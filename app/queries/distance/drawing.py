"""Draws the distances between an attribute's values: a heat map beside a dendrogram.

The texts are not escaped here: ``answer.html`` escapes them when it writes the shapes. The
dendrogram determines the order of the rows, and coordinates are in the unit of the drawing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from app.queries.distance.linkage import Node, average_linkage
from app.queries.parts.sentences import printable

#: The most values of an attribute that a heat map shows. With more values its cells would be
#: smaller than a point.
MOST = 60
TREE, LABEL, WIDTH = 110, 150, 640
#: The heights, in SVG units, of the vertical labels of the columns and of the legend below the map.
TOP, LEGEND = 130.0, 46.0
LONGEST = 20
#: The number of shades in the legend, and the width of each in SVG units.
SHADES, SHADE_WIDTH = 5, 44.0


@dataclass(frozen=True)
class Cell:
    """The square of one distance; it is more opaque the smaller the distance is."""

    x: float
    y: float
    opacity: float
    title: str


@dataclass(frozen=True)
class Shade:
    """One shade of the legend, with the distance that it stands for."""

    x: float
    opacity: float
    text: str


@dataclass(frozen=True)
class HeatMap:
    """The shapes of one heat map and its dendrogram."""

    label_x: ClassVar[int] = TREE + 6
    width: float
    height: float
    #: The side length of one square cell, in SVG units.
    side: float
    #: For each row: the y coordinate of its label's baseline, and the label.
    labels: tuple[tuple[float, str], ...]
    #: For each column: the x coordinate of its label, which ends at ``columns_y``, and the label.
    columns: tuple[tuple[float, str], ...]
    columns_y: ClassVar[float] = TOP - 6
    #: The shades of the legend, from the smallest distance to the largest.
    legend: tuple[Shade, ...]
    legend_y: float
    cells: tuple[Cell, ...]
    #: The lines of the dendrogram, as SVG paths.
    branches: tuple[str, ...]


def draw(answer: Mapping[str, Any]) -> dict[str, HeatMap]:
    """Returns a heat map for each attribute that has between 2 and ``MOST`` values."""
    return {
        attribute: heat_map(metric["values"], metric["matrix"])
        for attribute, metric in answer["distances"].items()
        if 2 <= len(metric["values"]) <= MOST
    }


def heat_map(values: Sequence[str], matrix: Sequence[Sequence[float]]) -> HeatMap:
    """Draws a symmetric (n, n) distance matrix, 2 ≤ n ≤ MOST; small distances are dark."""
    tree = average_linkage(matrix)
    order = tree.order()
    side = min(34.0, (WIDTH - TREE - LABEL) / len(order))
    farthest = max(max(row) for row in matrix) or 1.0
    rows = {value: TOP + (place + 0.5) * side for place, value in enumerate(order)}
    branches: list[str] = []
    _add_branches(tree, rows, max(tree.height, 1e-12), branches)
    cells = (
        Cell(
            x=TREE + LABEL + place * side,
            y=rows[value] - side / 2,
            opacity=1 - matrix[value][other] / farthest,
            title=f"{printable(values[value])} and {printable(values[other])}: "
            f"{matrix[value][other]:.4g}",
        )
        for value in order
        for place, other in enumerate(order)
    )
    bottom = TOP + side * len(order)
    return HeatMap(
        width=TREE + LABEL + max(side * len(order), SHADES * SHADE_WIDTH) + 4,
        height=bottom + LEGEND,
        side=side,
        columns=tuple(
            (TREE + LABEL + (place + 0.5) * side + 4, printable(values[value], LONGEST))
            for place, value in enumerate(order)
        ),
        legend=tuple(
            Shade(
                x=TREE + LABEL + i * SHADE_WIDTH,
                opacity=1 - i / (SHADES - 1),
                text=f"{farthest * i / (SHADES - 1):.3g}",
            )
            for i in range(SHADES)
        ),
        legend_y=bottom + 12,
        labels=tuple((rows[value] + 4, printable(values[value], LONGEST)) for value in order),
        cells=tuple(cells),
        branches=tuple(branches),
    )


def _add_branches(node: Node, rows: dict[int, float], whole: float, branches: list[str]) -> float:
    """Adds the lines of a node and its subtrees to ``branches``. Returns the y of its middle."""
    if node.left is None or node.right is None:
        return rows[node.value]
    upper, lower = (
        _add_branches(child, rows, whole, branches) for child in (node.left, node.right)
    )
    here = _x(node.height, whole)
    first, second = (_x(child.height, whole) for child in (node.left, node.right))
    branches.append(f"M{first:.1f} {upper:.1f} H{here:.1f} V{lower:.1f} H{second:.1f}")
    return (upper + lower) / 2


def _x(height: float, whole: float) -> float:
    """Returns the x of a linkage height: leaves are at the labels, the root at the left edge."""
    return 4 + (TREE - 8) * (1 - height / whole)
