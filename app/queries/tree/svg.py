"""Draws decision trees as SVG: the root is at the left, and each leaf has a row.

The drawing has plain shapes without scripts, style sheets and links, so a browser shows it under
the strictest content security policy.
"""

from xml.sax.saxutils import escape

from app.queries.parts.sentences import printable
from app.queries.tree.branches import Tree, label, ways

ROW, GAP, PAD, CHARACTER = 26, 46, 10, 7
LONGEST = 60
#: The corner radius in SVG units, the fill and the stroke of the boxes of leaves and of inner
#: nodes.
LEAF, INNER = (10, "#e8f3ec", "#2e7d4f"), (3, "#e9eefb", "#3559b5")


def svg(trees: list[Tree]) -> str:
    """Returns one SVG document with the trees one below the other."""
    drawing = _Drawing()
    for tree in trees:
        drawing.place(tree, PAD, "")
        drawing.row += 1
    width = drawing.right + PAD
    height = max(drawing.row - 1, 1) * ROW + 2 * PAD
    body = "\n".join(drawing.lines + drawing.boxes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img">\n'
        f"<title>decision tree</title>\n"
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


class _Drawing:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.boxes: list[str] = []
        self.row = 0
        self.right = 0

    def place(self, node: Tree, x: int, answer: str) -> float:
        """Draws a node and its subtrees from ``x`` to the right. Returns the y of its middle."""
        text = printable(label(node) if "label" in node else str(node["attribute"]), LONGEST)
        caption = printable(answer, LONGEST)
        start = x + CHARACTER * len(caption) + (PAD if caption else 0)
        width = CHARACTER * len(text) + 2 * PAD
        if "label" in node:
            middle = PAD + self.row * ROW + ROW / 2
            self.row += 1
        else:
            below = start + width + GAP
            ends = [self.place(child, below, way) for way, child in ways(node)]
            middle = (ends[0] + ends[-1]) / 2
            for end in ends:
                self.lines.append(
                    f'<path d="M{start + width} {middle:g} C{below - GAP // 2} {middle:g} '
                    f'{below - GAP // 2} {end:g} {below - 4} {end:g}" fill="none" '
                    'stroke="#8a8f98"/>'
                )
        if caption:
            self.boxes.append(_text(caption, x, middle, "#444b55"))
        corner, fill, stroke = LEAF if "label" in node else INNER
        self.boxes += (
            f'<rect x="{start}" y="{middle - 10:g}" width="{width}" height="20" '
            f'rx="{corner}" fill="{fill}" stroke="{stroke}"/>',
            _text(text, start + PAD, middle, "#15181d"),
        )
        self.right = max(self.right, start + width)
        return middle


def _text(text: str, x: int, middle: float, colour: str) -> str:
    return f'<text x="{x}" y="{middle + 4:g}" fill="{colour}">{escape(text)}</text>'
