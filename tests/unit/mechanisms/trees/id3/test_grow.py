"""Trees grown at a large loss fit the records; at any loss their shape is valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from mechanisms.model.domains import CategoricalAttribute, Dataset, NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.forest import forest
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.tree_shape import MAX_NODES, check_tree
from mechanisms.selection import SELECTORS
from mechanisms.trees.id3 import Id3, grow
from mechanisms.trees.id3.split_rule import CRITERIA
from mechanisms.trees.task import Task
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.trees.tables import ATTRIBUTES, dataset, depth, leaves, people, records

LARGE = PrivacyLoss(10**6 * 10**9)

every_criterion = pytest.mark.parametrize("criterion", CRITERIA)
every_sensitivity = pytest.mark.parametrize("sensitivity", list(Sensitivity))
every_selector = pytest.mark.parametrize("selector", SELECTORS)


def grown(
    table: TableRecords,
    public: Dataset,
    *,
    loss: PrivacyLoss = LARGE,
    attributes: tuple[str, ...] | None = None,
    max_depth: int = 5,
    criterion: str = "information_gain",
    sensitivity: Sensitivity = Sensitivity.GLOBAL,
    selector: str = "permute_and_flip",
    prune: bool = False,
    seed: int = 1,
    executor: Any = None,
) -> dict[str, Any]:
    options = Id3(
        Task.of(public, attributes, "paid"),
        max_depth,
        criterion,
        sensitivity,
        SELECTORS[selector],
        prune,
    )
    randomness = SeededRandomness(seed)
    tree = grow(context(table, public, loss, randomness, executor), options)
    check_tree(tree)
    forest([tree], public.domain, "paid", "yes")  # type: ignore[arg-type]  # it fits the domain
    assert depth(tree) <= max_depth
    return tree


@every_criterion
@every_sensitivity
@every_selector
def test_the_rule_behind_the_records_is_found(
    criterion: str, sensitivity: Sensitivity, selector: str
) -> None:
    public = dataset()
    tree = grown(
        people(2000),
        public,
        attributes=("sex", "age"),
        criterion=criterion,
        sensitivity=sensitivity,
        selector=selector,
        prune=True,
    )
    assert tree["attribute"] in ("sex", "age")
    correct = [rightly(tree, row) for row in rows(people(500, seed=7))]
    assert np.mean(correct) == 1.0


def rows(table: TableRecords) -> list[dict[str, int]]:
    names = list(table.codes)
    return [
        dict(zip(names, row, strict=True))
        for row in zip(*(table.codes[name].tolist() for name in names), strict=True)
    ]


def rightly(tree: dict[str, Any], row: dict[str, int]) -> bool:
    """True if the tree predicts the class of a row; in plain Python."""
    public = {a.name: a.levels for a in dataset().domain.attributes}  # type: ignore[union-attr]
    while "label" not in tree:
        tree = tree["branches"][public[tree["attribute"]][row[tree["attribute"]]]]
    return bool(tree["label"] == public["paid"][row["paid"]])


def counts_of(leaf: dict[str, Any]) -> dict[str, int]:
    return {label: number["value"] for label, number in leaf["counts"].items()}


def test_leaves_carry_the_counts_of_their_own_records() -> None:
    table = people(3000, noise=0.3)
    tree = grown(table, dataset(), attributes=("sex", "town"), max_depth=2)
    sex, town, paid = (table.codes[name] for name in ("sex", "town", "paid"))
    for s, sex_name in enumerate(("f", "m")):
        for t, town_name in enumerate(("a", "b", "c", "?")):
            way = {"sex": sex_name, "town": town_name}
            leaf = tree
            while "label" not in leaf:
                leaf = leaf["branches"][way[leaf["attribute"]]]
            expected = np.bincount(paid[(sex == s) & (town == t)], minlength=2)
            # At ε = 2·10⁵ per leaf the noise is zero, except with probability e^−200000.
            assert list(counts_of(leaf).values()) == expected.tolist()
            assert leaf["label"] == ("yes", "no")[int(np.argmax(expected))]


def test_depth_beyond_the_attributes_ends_with_them() -> None:
    tree = grown(people(1000), dataset(), attributes=("sex", "town"), max_depth=64)
    assert depth(tree) == 2


def test_no_depth_is_one_leaf() -> None:
    tree = grown(people(1000), dataset(), max_depth=0)
    paid = np.bincount(people(1000).codes["paid"], minlength=2)
    assert (tree["label"], counts_of(tree)) == ("yes", {"yes": paid[0], "no": paid[1]})


def test_one_attribute_is_split_by_without_a_choice() -> None:
    tree = grown(people(1000), dataset(), attributes=("sex",))
    assert tree["attribute"] == "sex"
    assert list(tree["branches"]) == ["f", "m"]


def test_an_empty_table_is_one_leaf_or_noise() -> None:
    nothing = records({"sex": [], "town": [], "age": [], "paid": []}, {"age": []})
    tree = grown(nothing, dataset())
    number = {"value": 0, "low": 0, "high": 0}
    assert tree == {"label": "yes", "counts": {"yes": number, "no": number}}
    for seed in range(20):
        grown(nothing, dataset(), loss=PrivacyLoss(10**9), seed=seed, prune=True)


def test_one_class_alone_gives_that_label_everywhere() -> None:
    rows_ = 500
    table = records(
        {"sex": [0, 1] * (rows_ // 2), "town": [1] * rows_, "age": [2] * rows_, "paid": [1] * rows_}
    )
    tree = grown(table, dataset(), attributes=("sex", "town"), prune=True)
    number = {"value": rows_, "low": rows_, "high": rows_, "raw": rows_}
    assert (tree["label"], tree["counts"]["no"]) == ("no", number)


def test_equal_rows_go_down_one_way() -> None:
    rows_ = 1000
    table = records({name: [1] * rows_ for name in ("sex", "town", "age", "paid")})
    tree = grown(table, dataset())
    assert sum(counts_of(leaf)["no"] for leaf in leaves(tree)) == rows_
    assert sorted(counts_of(leaf)["no"] for leaf in leaves(tree))[:-1] == [0] * (
        len(leaves(tree)) - 1
    )


CORNERS: dict[str, dict[str, list[int]]] = {
    "no rows": {name: [] for name in ("sex", "town", "age", "paid")},
    "one row": {name: [1] for name in ("sex", "town", "age", "paid")},
    "equal rows": {name: [1] * 400 for name in ("sex", "town", "age", "paid")},
    "one class": {"sex": [0, 1] * 200, "town": [0, 1, 2, 3] * 100, "age": [3, 2] * 200,
                  "paid": [1] * 400},
}  # fmt: skip


@every_criterion
@every_sensitivity
@pytest.mark.parametrize("corner", CORNERS.values(), ids=CORNERS)
def test_corners_are_right_by_every_criterion_and_sensitivity(
    criterion: str, sensitivity: Sensitivity, corner: dict[str, list[int]]
) -> None:
    table = records(corner)
    counted = np.bincount(table.codes["paid"], minlength=2).tolist()
    for max_depth, names in ((0, None), (1, ("sex",)), (3, None), (64, ("town", "sex"))):
        for prune in (False, True):
            tree = grown(
                table, dataset(), attributes=names, max_depth=max_depth, criterion=criterion,
                sensitivity=sensitivity, prune=prune,
            )  # fmt: skip
            counts = [list(counts_of(leaf).values()) for leaf in leaves(tree)]
            # Each leaf has an ε of at least 10⁵, so its noise is not zero with a probability of
            # about e^−10⁵ only.
            assert np.sum(counts, axis=0).tolist() == counted
            assert all(leaf["label"] == "no" for leaf in leaves(tree) if counts_of(leaf)["no"])


def test_small_nodes_stop() -> None:
    # A split of the root needs √2 · (14/4) · 4 · 2 = 39.6 noisy records. A leaf has 4 of 14 shares
    # of ε = 1, and there are at most four levels and two classes.
    stopped = [
        "label" in grown(people(20), dataset(), max_depth=2, loss=PrivacyLoss(10**9), seed=seed)
        for seed in range(20)
    ]
    # The noise seldom adds the records that are missing to a split, and the seeds are fixed.
    assert sum(stopped) >= 18
    grew = grown(people(5000), dataset(), max_depth=2, loss=PrivacyLoss(10**9))
    assert depth(grew) >= 1


@every_sensitivity
def test_the_tree_does_not_depend_on_the_workers(sensitivity: Sensitivity) -> None:
    executor = ThreadExecutor(2)
    table = people(5000, noise=0.5)
    one, two = (
        grown(table, dataset(), sensitivity=sensitivity, loss=PrivacyLoss(10**10), executor=with_)
        for with_ in (Inline(), executor)
    )
    executor.close()
    assert one == two


def test_a_tree_never_outgrows_the_public_limit() -> None:
    wide = tuple(CategoricalAttribute(f"w{i}", tuple(map(str, range(300)))) for i in range(3))
    paid = CategoricalAttribute("paid", ("yes", "no"))
    public = dataset(100_000, attributes=(*wide, paid))
    generator = np.random.default_rng(3)
    codes: dict[str, Any] = {
        f"w{i}": generator.integers(0, 300, 50_000).astype(np.uint16) for i in range(3)
    }
    codes["paid"] = generator.integers(0, 2, 50_000).astype(np.uint8)
    # At so large an ε every node with a few records would be split without the limit on nodes.
    tree = grown(TableRecords(codes, {}), public, loss=PrivacyLoss(10**15))
    assert 2000 < check_tree(tree) <= MAX_NODES


@pytest.mark.parametrize(
    ("attributes", "class_name"),
    [(("sex", "sex"), "paid"), (("sex", "paid"), "paid"), (("nobody",), "paid"), (None, "wage")],
)
def test_what_does_not_fit_is_refused(attributes: Any, class_name: str) -> None:
    with pytest.raises(UnsupportedQuery):
        Task.of(dataset(), attributes, class_name)


def test_bins_have_names_of_their_own() -> None:
    """With six digits the inner edges would be equal, and one branch would replace another."""
    edges = (1e6, 1e6 + 0.25, 1e6 + 0.5, 1e6 + 1)
    age = NumericAttribute("age", edges[0], edges[-1], edges)
    public = dataset(attributes=(age, ATTRIBUTES[-1]))
    table = records({"age": [0, 1, 2] * 50, "paid": [0, 1, 0] * 50})
    tree = grown(table, public)
    assert list(tree["branches"]) == [
        "[1000000,1000000.25)",
        "[1000000.25,1000000.5)",
        "[1000000.5,1000001]",
    ]


def test_levels_of_one_name_are_refused() -> None:
    age = NumericAttribute("age", 0.0, 2.0, (0.0, 1.0, 2.0), missing="[0,1)")
    with pytest.raises(UnsupportedQuery):
        Task.of(dataset(attributes=(age, ATTRIBUTES[-1])), None, "paid")
