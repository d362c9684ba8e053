"""The names that docs/dev/words.md replaces, and where a source file uses them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

#: Banned names of variables. A variable is a noun that says what it is: the row, the request, the
#: outcome, the remaining budget.
VARIABLES = frozenset(
    {
        "asked",
        "found",
        "given",
        "held",
        "kept",
        "known",
        "left",
        "made",
        "shown",
        "told",
        "wanted",
    }
)
#: Banned names of classes, which must be nouns as well.
CLASSES = frozenset({"Asked", "Asking", "Hidden", "Known", "Leaning", "Made", "Standing", "Told"})
_WORDS = re.compile(rf"(?<![A-Za-z0-9])_*(?:{'|'.join(sorted(CLASSES | VARIABLES))})(?![\w])")


def banned(source: str) -> list[str]:
    """The banned names that a file binds, each with its line."""
    # Most files contain no banned word, and a text search is faster than a walk over a syntax tree.
    if not _WORDS.search(source):
        return []
    return sorted(
        f"{line}: {name}"
        for name, line, scope in _bound(ast.parse(source))
        if name.lstrip("_") in CLASSES | VARIABLES and not _is_side(name, scope)
    )


def _is_side(name: str, scope: frozenset[str]) -> bool:
    """True for ``left`` beside ``right``: a side, not what remains."""
    return name == "left" and "right" in scope


def _bound(tree: ast.AST) -> Iterator[tuple[str, int, frozenset[str]]]:
    for scope, nodes in _scopes(tree):
        names = [bound for node in nodes for bound in _names(node)]
        together = frozenset(name for name, _ in names)
        yield from ((name, line, together) for name, line in names)
        if isinstance(scope, ast.ClassDef):
            yield scope.name, scope.lineno, together


def _scopes(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.AST]]]:
    """Each module, class and function with the nodes that belong to it alone."""
    inner = [tree]
    while inner:
        scope = inner.pop()
        nodes: list[ast.AST] = []
        rest = list(ast.iter_child_nodes(scope))
        while rest:
            node = rest.pop()
            nodes.append(node)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                inner.append(node)
            else:
                rest.extend(ast.iter_child_nodes(node))
        yield scope, nodes


def _names(node: ast.AST) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id, node.lineno
    elif isinstance(node, ast.arg):
        yield node.arg, node.lineno
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name, node.lineno
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr, node.lineno
