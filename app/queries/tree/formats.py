"""Writes models as text, Graphviz or SVG: pure functions of the JSON of the answer."""

from collections.abc import Callable, Mapping
from typing import Any

from app.queries.parts.kind import Format
from app.queries.parts.sentences import printable
from app.queries.tree import model
from app.queries.tree.branches import Tree, label, label_with_intervals, ways
from app.queries.tree.svg import svg


def text(trees: list[Tree]) -> str:
    """Writes trees as indented text with one line per branch, and numbers several trees."""
    blocks = []
    for number, tree in enumerate(trees, 1):
        lines = [f"tree {number}"] if len(trees) > 1 else []
        lines += [label_with_intervals(tree)] if "label" in tree else _below(tree, "")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _below(node: Tree, indent: str) -> list[str]:
    lines = []
    for answer, child in ways(node):
        question = f"{indent}{printable(node['attribute'])} {printable(answer)}"
        if "label" in child:
            lines.append(f"{question}: {printable(label_with_intervals(child))}")
        else:
            lines += [question, *_below(child, indent + "│   ")]
    return lines


def dot(trees: list[Tree]) -> str:
    """Writes one directed graph for ``dot -Tpng``, with each tree as a component."""
    lines = ["digraph trees {", "  node [shape=box, fontname=sans];", "  edge [fontname=sans];"]
    free = 0
    for tree in trees:
        free = _add(tree, free, lines)
    return "\n".join([*lines, "}"]) + "\n"


def _add(node: Tree, number: int, lines: list[str]) -> int:
    """Adds the node and its subtrees to ``lines``. Returns the next free node number."""
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
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def network(bayes: model.Model) -> str:
    """Writes the graph of a naive Bayes model: an edge from the class to each attribute."""
    lines = ["digraph model {", '  n0 [label="class"];']
    for number, name in enumerate(bayes["attributes"], 1):
        lines += [f'  n{number} [label="{_quoted(name)}"];', f"  n0 -> n{number};"]
    return "\n".join([*lines, "}"]) + "\n"


def _as(
    trees: Callable[[list[Tree]], str], bayes: Callable[[model.Model], str]
) -> Callable[[Mapping[str, Any]], str]:
    """Returns a writer of answers that hold either trees or a naive Bayes model."""
    return lambda answer: bayes(answer["model"]) if "model" in answer else trees(answer["trees"])


FORMATS: dict[str, Format] = {
    "text": Format("text/plain; charset=utf-8", _as(text, model.text)),
    "dot": Format("text/vnd.graphviz; charset=utf-8", _as(dot, network)),
    "svg": Format("image/svg+xml", _as(svg, model.svg)),
}


def draw(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns each tree or the model as SVG, with all names escaped, and as indented text."""
    if "model" in answer:
        return [(model.svg(answer["model"]), model.text(answer["model"]))]
    return [(svg([tree]), text([tree])) for tree in answer["trees"]]
