"""The two other forms of proposed trees: arrays for compiled evaluation, nested JSON for
answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mechanisms.model.forest import Column, Forest
from mechanisms.trees.evolutionary.proposals import Tree
from mechanisms.trees.evolutionary.questions import Questions


def flattened(trees: Sequence[Tree], questions: Questions, positive_code: int) -> Forest:
    """The trees as one forest; attributes that no tree tests are omitted."""
    nodes: list[tuple[int, int, int, int]] = []
    starts = [0]
    for tree in trees:
        _append(tree, nodes, starts[-1])
        starts.append(len(nodes))
    table = np.array(nodes, dtype=np.int64).reshape(-1, 4).T
    attribute, place = table[0], table[1]
    columns: list[Column] = []
    literal = np.full(len(nodes), -1, dtype=np.int32)
    first = 0
    for tested in sorted(set(attribute.tolist()) - {-1}):
        here = attribute == tested
        name = questions.task.attributes[tested].name
        if questions.numeric[tested]:
            places = np.unique(place[here])
            edges = np.array([questions.threshold((tested, int(p))) for p in places])
            column = Column(name, first, len(places), edges)
            literal[here] = first + np.searchsorted(places, place[here])
        else:
            column = Column(name, first, questions.task.levels[tested])
            literal[here] = first + place[here]
        columns.append(column)
        first += column.count
    return Forest(
        columns=tuple(columns),
        literals=first,
        literal=literal,
        yes=table[2].astype(np.int32),
        no=table[3].astype(np.int32),
        starts=np.array(starts, dtype=np.int32),
        class_attribute=questions.task.classes.name,
        positive_code=positive_code,
    )


def _append(tree: Tree, nodes: list[tuple[int, int, int, int]], start: int) -> None:
    """Append (attribute, place, yes, no) of every node, parents first, numbered from ``start``."""
    level: list[Tree] = [tree]
    free = start + 1
    while level:
        below: list[Tree] = []
        for node in level:
            if isinstance(node, bool):
                nodes.append((-1, -1, int(node), int(node)))
            else:
                (attribute, place), yes, no = node
                nodes.append((attribute, place, free, free + 1))
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
