"""Evaluation of trees against a plain walk of each row, on random tables and random trees."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.kernels import forests
from mechanisms.kernels.forests import confusion
from mechanisms.model.domains import CategoricalAttribute, NumericAttribute, TableDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.forest import forest
from mechanisms.model.records import TableRecords

CLASS = CategoricalAttribute("class", ("a", "b", "c"))
COLOUR = CategoricalAttribute("colour", ("red", "green", "blue"), missing="?")
SAME = CategoricalAttribute("same", ("only",))
AGE = NumericAttribute("age", 0.0, 100.0, (0.0, 25.0, 50.0, 100.0), missing="")
DOMAIN = TableDomain((COLOUR, SAME, CLASS, AGE), "class", max_rows=10_000)
Tree = Mapping[str, Any]

leaves = st.sampled_from(CLASS.levels).map(lambda label: {"label": label})


def inner_nodes(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    attributes = st.sampled_from([COLOUR, SAME, AGE])
    branches = attributes.flatmap(
        lambda attribute: st.fixed_dictionaries(
            {
                "attribute": st.just(attribute.name),
                "branches": st.fixed_dictionaries(dict.fromkeys(attribute.levels, below)),
            }
        )
    )
    equality = attributes.flatmap(
        lambda attribute: st.fixed_dictionaries(
            {
                "attribute": st.just(attribute.name),
                "value": st.sampled_from(attribute.levels),
                "equal": below,
                "other": below,
            }
        )
    )
    threshold = st.fixed_dictionaries(
        {
            "attribute": st.just("age"),
            "threshold": st.sampled_from([-3, 0, 25.0, 33, 50.0, 99.5, 100, 1e300]),
            "below": below,
            "above": below,
        }
    )
    return branches | equality | threshold


trees = st.recursive(leaves, inner_nodes, max_leaves=12)


def random_records(rows: int, seed: int) -> TableRecords:
    rng = np.random.default_rng(seed)
    ages = rng.choice([0.0, 24.9, 25.0, 33.0, 49.0, 50.0, 75.0, 100.0], rows)
    bins = np.minimum(np.searchsorted(AGE.edges, ages, side="right") - 1, 2)
    missing = rng.random(rows) < 0.1
    codes = {
        "colour": rng.integers(0, 4, rows).astype(np.uint8),
        "same": np.zeros(rows, np.uint8),
        "class": rng.integers(0, 3, rows).astype(np.uint16),
        "age": np.where(missing, 3, bins).astype(np.uint8),
    }
    return TableRecords(codes, {"age": np.where(missing, 50.0, ages)})


def label_of(tree: Tree, records: TableRecords, row: int) -> str:
    """The label of a row by the definition."""
    while "label" not in tree:
        name = tree["attribute"]
        level = DOMAIN.attribute(name).levels[records.codes[name][row]]
        if "branches" in tree:
            tree = tree["branches"][level]
        elif "value" in tree:
            tree = tree["equal"] if level == tree["value"] else tree["other"]
        else:
            above = records.values[name][row] >= tree["threshold"]
            tree = tree["above"] if above else tree["below"]
    return str(tree["label"])


def plain(records: TableRecords, listed: list[Tree], positive: str) -> list[tuple[int, int]]:
    actual = [CLASS.levels[code] == positive for code in records.codes["class"]]
    counts = []
    for tree in listed:
        said = [label_of(tree, records, row) == positive for row in range(len(actual))]
        pairs = list(zip(said, actual, strict=True))
        counts.append((pairs.count((True, True)), pairs.count((False, False))))
    return counts


@settings(deadline=None, max_examples=150)
@given(
    st.lists(trees, min_size=1, max_size=4),
    st.sampled_from(CLASS.levels),
    st.sampled_from([0, 1, 63, 64, 65, 130]),
    st.integers(0, 2**32),
)
def test_every_tree_counts_as_a_plain_walk(
    listed: list[Tree], positive: str, rows: int, seed: int
) -> None:
    records = random_records(rows, seed)
    flat = forest(listed, DOMAIN, "class", positive)
    hits = confusion(records, flat)
    counts = zip(hits.true_positives.tolist(), hits.true_negatives.tolist(), strict=True)
    assert list(counts) == plain(records, listed, positive)
    actual = sum(CLASS.levels[code] == positive for code in records.codes["class"])
    assert (hits.positives, hits.negatives) == (actual, rows - actual)
    # In the arrays of a forest, children come after their parents. So one pass from the end
    # evaluates all trees.
    inner = np.flatnonzero(flat.literal >= 0)
    assert (flat.yes[inner] > inner).all()
    assert (flat.no[inner] > inner).all()


TREES: list[Tree] = [
    {
        "attribute": "age",
        "threshold": 33,
        "below": {
            "attribute": "colour",
            "value": "?",
            "equal": {"label": "a"},
            "other": {"label": "b"},
        },
        "above": {
            "attribute": "colour",
            "branches": {
                "red": {"label": "a"},
                "green": {"label": "b"},
                "blue": {"label": "a"},
                "?": {"label": "c"},
            },
        },
    },
    {"label": "a"},
    {"label": "b"},
]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_blocks_and_workers_change_nothing(workers: int) -> None:
    class Pool(Executor):
        def __init__(self) -> None:
            self.workers = workers

        def map(self, kernel: Any, parts: Any) -> list[Any]:
            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(kernel, parts))

    records = random_records(3 * forests.BLOCK + 17, 5)
    hits = confusion(records, forest(TREES, DOMAIN, "class", "a"), Pool())
    counts = zip(hits.true_positives.tolist(), hits.true_negatives.tolist(), strict=True)
    assert list(counts) == plain(records, TREES, "a")


def test_kernels_follow_their_plain_twins() -> None:
    records = random_records(200, 9)
    flat = forest(TREES, DOMAIN, "class", "b")
    codes = records.codes["colour"]
    words = forests._level_words(codes, 2)
    bits = [int(word) >> i & 1 for word in words for i in range(64)]
    assert bits == [*(int(code == 2) for code in codes), *[0] * (256 - 200)]
    literals = forests._literal_words(forests._columns(records, flat), flat, slice(0, 200), 4)
    words_of = {column.attribute: literals[column.first] for column in flat.columns}
    assert (words_of["colour"] == forests._level_words(codes, 0)).all()
    over = [int(word) >> i & 1 for word in words_of["age"] for i in range(64)]
    assert over[:200] == [int(value >= 33) for value in records.values["age"]]


@pytest.mark.parametrize(
    "tree",
    [
        {"label": "d"},
        {"attribute": "shape", "value": "x", "equal": {"label": "a"}, "other": {"label": "b"}},
        {"attribute": "class", "value": "a", "equal": {"label": "a"}, "other": {"label": "b"}},
        {"attribute": "colour", "value": "x", "equal": {"label": "a"}, "other": {"label": "b"}},
        {"attribute": "colour", "threshold": 1, "below": {"label": "a"}, "above": {"label": "b"}},
        {"attribute": "colour", "branches": {"red": {"label": "a"}}},
        {"attribute": "same", "branches": {"only": {"label": "a"}, "more": {"label": "b"}}},
    ],
)
def test_trees_beside_the_domain_are_refused(tree: Tree) -> None:
    with pytest.raises(UnsupportedQuery):
        forest([tree, {"label": "a"}], DOMAIN, "class", "a")


def test_classes_beside_the_domain_are_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="class attribute"):
        forest([{"label": "a"}], DOMAIN, "colours", "a")
    with pytest.raises(UnsupportedQuery, match="positive class"):
        forest([{"label": "a"}], DOMAIN, "class", "d")
