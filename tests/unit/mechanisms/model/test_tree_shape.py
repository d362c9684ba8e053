"""Trees of any shape and size are accepted or refused without recursion."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mechanisms.model.tree_shape import MAX_DEPTH, MAX_NODES, check_tree, signature

LEAF = {"label": "yes"}


def path(depth: int) -> dict[str, Any]:
    """A tree that is one long path, with a threshold at every level."""
    tree: dict[str, Any] = dict(LEAF)
    for level in range(depth):
        tree = {"attribute": "age", "threshold": level, "below": tree, "above": dict(LEAF)}
    return tree


def equality(**changes: Any) -> dict[str, Any]:
    return {"attribute": "sex", "value": "F", "equal": LEAF, "other": LEAF, **changes}


def test_nodes_of_every_form_are_counted() -> None:
    branches = {"attribute": "sex", "branches": {"F": LEAF, "M": equality()}}
    assert check_tree(LEAF) == 1
    assert check_tree({"label": "yes", "counts": {"yes": 3, "no": -1}}) == 1
    released = {"value": 3, "low": 1, "high": 5}
    assert check_tree({"label": "yes", "counts": {"yes": released}}) == 1
    assert check_tree(branches) == 5
    assert check_tree(path(MAX_DEPTH)) == 2 * MAX_DEPTH + 1


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 10_000, 100_000])
def test_too_deep_a_tree_is_refused_at_once(depth: int) -> None:
    tree, start = path(depth), time.process_time()
    with pytest.raises(ValueError, match="depth of at most"):
        check_tree(tree)
    assert time.process_time() - start < 5
    # Python frees nested objects by recursion, so the test takes the deep tree apart level by
    # level.
    while "below" in tree:
        tree = tree.pop("below")


def test_too_many_nodes_are_refused() -> None:
    def full(depth: int) -> dict[str, Any]:
        return equality(equal=full(depth - 1), other=full(depth - 1)) if depth else dict(LEAF)

    wide = {"attribute": "sex", "branches": {str(i): LEAF for i in range(MAX_NODES)}}
    with pytest.raises(ValueError, match="at most 4096 nodes"):
        check_tree(wide)
    with pytest.raises(ValueError, match="at most 4096 nodes"):
        check_tree(full(12))
    with pytest.raises(ValueError, match="at most 4096 nodes"):
        # A full tree of depth 16 has 131,071 nodes.
        check_tree(full(16))
    assert check_tree(full(11)) == 4095


@pytest.mark.parametrize(
    "node",
    [
        [],
        "yes",
        None,
        {},
        {"label": 1},
        {"label": "yes", "attribute": "sex"},
        {"label": "yes", "counts": [1, 2]},
        {"label": "yes", "counts": {"yes": "3"}},
        {"label": "yes", "counts": {"yes": {"low": 3}}},
        {"label": "yes", "counts": {"yes": {"value": 3, "low": "1"}}},
        {"label": "yes", "counts": {"yes": {"deep": {}}}},
        {"attribute": "sex", "branches": {}},
        {"attribute": "sex", "branches": []},
        {"attribute": "sex", "branches": {1: LEAF}},
        {"attribute": ["sex"], "branches": {"F": LEAF}},
        {"attribute": "sex", "branches": {"F": None}},
        {"attribute": "sex", "value": "F", "equal": LEAF},
        equality(value=None),
        equality(value=3),
        equality(more=LEAF),
        equality(other={"label": None}),
        {"attribute": "age", "threshold": "3", "below": LEAF, "above": LEAF},
        {"attribute": "age", "threshold": True, "below": LEAF, "above": LEAF},
        {"attribute": "age", "threshold": float("nan"), "below": LEAF, "above": LEAF},
        {"attribute": "age", "threshold": float("inf"), "below": LEAF, "above": LEAF},
        {"attribute": "age", "threshold": 10**400, "below": LEAF, "above": LEAF},
        {"attribute": "age", "value": "F", "threshold": 3, "below": LEAF, "above": LEAF},
    ],
)
def test_malformed_nodes_are_refused(node: Any) -> None:
    with pytest.raises(ValueError):
        check_tree(node)
    with pytest.raises(ValueError):
        check_tree(equality(other=node))


def test_equal_trees_have_one_signature() -> None:
    one = {"attribute": "sex", "branches": {"F": LEAF, "M": {"label": "no"}}}
    same = {"branches": {"M": {"label": "no", "counts": {}}, "F": LEAF}, "attribute": "sex"}
    turned = {"attribute": "sex", "branches": {"M": LEAF, "F": {"label": "no"}}}
    assert signature(one) == signature(same)
    trees = [one, turned, LEAF, path(2), path(3), equality(), equality(value="M")]
    assert len(set(map(signature, trees))) == len(trees)
