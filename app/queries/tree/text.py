"""A tree as indented text, one line per branch."""

from __future__ import annotations

from app.queries.tree.branches import Tree, label, ways


def text(trees: list[Tree]) -> str:
    """All trees, numbered where there are several."""
    blocks = []
    for number, tree in enumerate(trees, 1):
        lines = [f"tree {number}"] if len(trees) > 1 else []
        lines += [label(tree)] if "label" in tree else _below(tree, "")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _below(node: Tree, indent: str) -> list[str]:
    lines = []
    for answer, child in ways(node):
        question = f"{indent}{_one_line(node['attribute'])} {_one_line(answer)}"
        if "label" in child:
            lines.append(f"{question}: {_one_line(label(child))}")
        else:
            lines += [question, *_below(child, indent + "│   ")]
    return lines


def _one_line(name: str) -> str:
    """Names are the owner's words: a line break or a control character must not break a line."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
