"""The two other forms of proposed trees: arrays for compiled evaluation, nested JSON for
answers."""

from collections.abc import Sequence
from typing import Any

from mechanisms.model.forest import FlatNode, Forest, numbered
from mechanisms.trees.evolutionary.proposals import Tree
from mechanisms.trees.evolutionary.questions import Questions, Test


def flattened(trees: Sequence[Tree], questions: Questions, positive_code: int) -> Forest:
    """The trees as one forest; attributes that no tree tests are omitted."""
    nodes: list[FlatNode] = []
    tests: dict[Test, int] = {}
    starts = [0]
    for tree in trees:
        _append(tree, tests, nodes, starts[-1])
        starts.append(len(nodes))
    literals = [questions.literal(test) for test in tests]
    levels = {attribute.name: len(attribute.levels) for attribute in questions.task.attributes}
    return numbered(nodes, literals, starts, levels, questions.task.classes.name, positive_code)


def _append(tree: Tree, tests: dict[Test, int], nodes: list[FlatNode], start: int) -> None:
    """Append the nodes of a tree, parents first, from number ``start`` on, and number its tests."""
    level: list[Tree] = [tree]
    free = start + 1
    while level:
        below: list[Tree] = []
        for node in level:
            if isinstance(node, bool):
                nodes.append((-1, int(node), int(node)))
            else:
                test, yes, no = node
                nodes.append((tests.setdefault(test, len(tests)), free, free + 1))
                free += 2
                below += [yes, no]
        level = below


def as_json(tree: Tree, questions: Questions, positive: str, other: str) -> dict[str, Any]:
    """The nested JSON form of requests; ``other`` labels leaves that are not positive."""
    if isinstance(tree, bool):
        return {"label": positive if tree else other}
    test, yes, no = tree
    attribute = questions.task.attributes[test[0]]
    if questions.numeric[test[0]]:
        return {
            "attribute": attribute.name,
            "threshold": questions.threshold(test),
            "below": as_json(no, questions, positive, other),
            "above": as_json(yes, questions, positive, other),
        }
    return {
        "attribute": attribute.name,
        "value": attribute.levels[test[1]],
        "equal": as_json(yes, questions, positive, other),
        "other": as_json(no, questions, positive, other),
    }
