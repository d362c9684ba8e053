"""A tree in the language of Graphviz: ``dot -Tpng`` draws it."""

from __future__ import annotations

from app.queries.tree.branches import Tree, label, ways


def dot(trees: list[Tree]) -> str:
    """One directed graph; each tree is a component of it."""
    lines = ["digraph trees {", "  node [shape=box, fontname=sans];", "  edge [fontname=sans];"]
    free = 0
    for tree in trees:
        free = _add(tree, free, lines)
    return "\n".join([*lines, "}"]) + "\n"


def _add(node: Tree, number: int, lines: list[str]) -> int:
    """Write the node and all below it; the next free number."""
    if "label" in node:
        lines.append(f'  n{number} [label="{_quoted(label(node))}", style=rounded];')
        return number + 1
    lines.append(f'  n{number} [label="{_quoted(node["attribute"])}"];')
    free = number + 1
    for answer, child in ways(node):
        lines.append(f'  n{number} -> n{free} [label="{_quoted(answer)}"];')
        free = _add(child, free, lines)
    return free


def _quoted(text: str) -> str:
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text.replace("\\", "\\\\").replace('"', '\\"')
