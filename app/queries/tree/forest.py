"""Tree queries by a forest: several trees of the same records, each at an equal share of ε."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from accounting.composition import for_group
from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries.parts.accuracy import CONFIDENCE, least_loss, only
from app.queries.parts.conversion import (
    Native,
    as_add_remove,
    charge_for,
    charge_for_add_remove,
    mechanism_loss,
)
from app.queries.parts.cost import memory
from app.queries.parts.query import Price, QueryContext
from app.queries.parts.sentences import counted, version_of
from app.queries.parts.suppression import leaf_counts
from app.queries.tree.common import COUNT_BYTES, COUNT_TARGET, DEPTH, SelectingQuery, expected
from mechanisms.model.domains import Dataset
from mechanisms.model.release import Release
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.tree_shape import MAX_DEPTH, MAX_NODES
from mechanisms.model.work import Work
from mechanisms.noise.count_noise import likely_error
from mechanisms.trees.expectation import FEW_TREES, TREES, default_trees
from mechanisms.trees.forest import PrivateSplits, RandomSplits, grown_forest, random_forest
from mechanisms.trees.id3 import Id3
from mechanisms.trees.id3.budget import most_nodes
from mechanisms.trees.id3.stop_rule import MAX_COUNTERS

#: The defaults of ``trees`` in requests that were stored in forms before 4, and in form 4.
TREES_BEFORE_4, TREES_IN_4 = 8, 4


class Forest(SelectingQuery):
    """Releases several trees with noisy class counts; together they vote on the class."""

    title: ClassVar[str] = "Private forest"
    description: ClassVar[str] = (
        "Several trees over attributes that are drawn at random, each with an equal share of the "
        "loss; leaves carry noisy class counts. The mean of their class probabilities predicts."
    )
    source: ClassVar[str] = (
        "Fletcher and Islam, Differentially private random decision forests using smooth "
        "sensitivity, 2017, with exact noise, and with the loss shared in place of the records"
    )
    targets: ClassVar[tuple[str, ...]] = (COUNT_TARGET,)
    gaussian: ClassVar[bool] = True

    algorithm: Literal["forest"]
    trees: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None,
        description=(
            "4 by default, or 2 where few records share a small ε: where the bound on rows times "
            "the ε of one added or removed record is below 150. The quote says which"
        ),
    )
    splits: Literal["random", "private"] = Field(
        default="random",
        description=(
            "`random` spends the whole loss on the counts of leaves; `private` selects splits as "
            "id3 does"
        ),
    )
    max_depth: int = Field(default=DEPTH, ge=0, le=MAX_DEPTH)

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        native = self._native(dataset, loss)
        if self.splits == "random":
            own = self._random(native).steps(native.dataset, native.loss)
        else:
            own = self._private(native).steps(native.loss)
        steps = (*for_group(own, native.members), *native.steps)
        chosen = {} if self.trees else {"trees": str(self._trees(native))}
        return Price(steps, lambda: self._accuracy(native), chosen)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        error = only(target, COUNT_TARGET)
        if self.trees is None:
            # Fewer trees reach a target at a smaller loss. So if the least loss of few trees is one
            # at which few are the default, no smaller loss reaches the target.
            few = self.model_copy(update={"trees": FEW_TREES}).loss_reaching(dataset, target)
            if self._trees(self._native(dataset, few)) == FEW_TREES:
                return few
            return self.model_copy(update={"trees": TREES}).loss_reaching(dataset, target)
        private = self.splits == "private"
        # Any loss serves here, because only the converted dataset is needed, which is the same for
        # every loss. The function ``reached`` puts each tried loss in its place.
        any_loss = charge_for_add_remove(dataset, PrivacyLoss(NANO))
        native = self._native(dataset, any_loss)

        def reached(loss: PrivacyLoss) -> int:
            return self._error(replace(native, loss=loss))

        loss = least_loss(reached, error)
        return charge_for_add_remove(dataset, loss) if private else charge_for(dataset, loss)

    def memory(self, dataset: Dataset) -> int:
        task = self._task(dataset)
        classes, most = len(task.labels), self.trees or TREES
        if self.splits == "random":
            leaves = most * RandomSplits(task, most, self.max_depth).most_leaves
            return memory(dataset, record=0, more=leaves * classes * COUNT_BYTES)
        node = task.cells
        depth = min(node * most_nodes(task.levels, self.max_depth), MAX_COUNTERS)
        more = most * MAX_NODES * classes * COUNT_BYTES
        return memory(dataset, cells=max(node, depth), more=more)

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        native = self._native(dataset, loss)
        if self.splits == "random":
            return self._random(native).work(native.dataset, native.loss)
        return self._private(native).work(native.dataset, native.loss)

    def in_form(self, form: int) -> Self:
        if form < 5 and self.trees is None:
            return self.model_copy(update={"trees": TREES_BEFORE_4 if form < 4 else TREES_IN_4})
        return self

    def mechanisms(self) -> set[str]:
        return set() if self.splits == "random" else super().mechanisms()

    def lowerable(self) -> tuple[str, ...]:
        return ("trees", "max_depth")

    def compute(self, context: QueryContext) -> Release:
        native = self._native(context.dataset, context.loss)
        within = replace(context, dataset=native.dataset, loss=native.loss)
        if self.splits == "random":
            trees = random_forest(within, self._random(native))
        else:
            trees = grown_forest(within, self._private(native))
        visible = [leaf_counts(tree, context.dataset) for tree in trees]
        return Release({"trees": visible, "confidence": CONFIDENCE})

    def question(self, dataset: Dataset, version: int) -> str:
        which = counted(self.trees, "decision tree") if self.trees else "several decision trees"
        return (
            f"How do {which} of depth at most {self.max_depth} together predict "
            f"{self._class(dataset)} from {self._inputs()} in {version_of(dataset, version)}?"
        )

    def _native(self, dataset: Dataset, loss: PrivacyLoss) -> Native:
        """The dataset and the loss as the trees read them: private splits need add/remove."""
        if self.splits == "private":
            return as_add_remove(dataset, loss)
        share, conversion = mechanism_loss(dataset, loss)
        return Native(dataset, share, conversion, dataset.records_per_person)

    def _trees(self, native: Native) -> int:
        return self.trees or default_trees(native.dataset, native.loss)

    def _random(self, native: Native) -> RandomSplits:
        return RandomSplits(self._task(native.dataset), self._trees(native), self.max_depth)

    def _private(self, native: Native) -> PrivateSplits:
        id3 = Id3(
            self._task(native.dataset),
            self.max_depth,
            "gini",
            Sensitivity.GLOBAL,
            self._selector(),
            prune=True,
            in_rho=self._leaves_in_rho,
        )
        return PrivateSplits(id3, self._trees(native))

    def _error(self, native: Native) -> int:
        """The error of a class count in a leaf at the full depth, of any tree."""
        if self.splits == "random":
            return self._random(native).count_error(native.dataset, native.loss)
        first, *_ = self._private(native).budgets(native.loss)
        return likely_error({first.leaf_law(first.splits): 1}, CONFIDENCE)

    def _accuracy(self, native: Native) -> dict[str, Any]:
        return {
            "confidence": CONFIDENCE,
            COUNT_TARGET: self._error(native),
            **self._expectation(native.dataset, native.loss, self.max_depth),
            "explanation": (
                f"With this probability a class count of a leaf is off by at most `{COUNT_TARGET}`."
                " Every tree reads all records, so fewer `trees` have less noise at the same loss."
                + expected(native.loss)
            ),
        }
