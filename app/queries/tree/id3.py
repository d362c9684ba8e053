"""Tree queries by ID3: a tree grows from the root, and each level has a share of the loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field

from accounting.composition import for_group
from accounting.privacy_loss import NANO, PrivacyLoss
from app.queries.parts.accuracy import CONFIDENCE, SCORE_TARGET, significant
from app.queries.parts.conversion import as_add_remove, charge_for_add_remove
from app.queries.parts.cost import memory
from app.queries.parts.query import Price, QueryContext
from app.queries.parts.sentences import version_of
from app.queries.parts.suppression import leaf_counts
from app.queries.tree.common import COUNT_TARGET, DEPTH, SelectingQuery, expected
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.release import Release
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.tree_shape import MAX_DEPTH
from mechanisms.model.work import Work
from mechanisms.noise.count_noise import likely_error, variance
from mechanisms.trees.id3 import Budget, Id3, grow
from mechanisms.trees.id3.budget import (
    loss_for_shares,
    most_nodes,
    share_for_count_error,
)
from mechanisms.trees.id3.gaussian_budget import GaussianBudget
from mechanisms.trees.id3.stop_rule import MAX_COUNTERS, least_count_of

#: For each of these probabilities, a quote states how far the best split's score must lead all
#: others to be chosen with that probability.
CHANCES = (0.5, 0.9, 0.99)


class Id3Tree(SelectingQuery):
    """Grows one decision tree whose leaves carry noisy class counts."""

    title: ClassVar[str] = "Private ID3"
    description: ClassVar[str] = (
        "Each level spends a share of the loss on noisy record counts, which stop small nodes, and "
        "four on the choice of the splits; leaves carry noisy class counts."
    )
    source: ClassVar[str] = (
        "Local Dampening, PVLDB 14(4), 2021, section 5.2; Friedman and Schuster, KDD 2010"
    )
    targets: ClassVar[tuple[str, ...]] = (SCORE_TARGET, COUNT_TARGET)
    gaussian: ClassVar[bool] = True

    algorithm: Literal["id3"] = "id3"
    criterion: Literal["information_gain", "gini", "max"] = "gini"
    sensitivity: Sensitivity = Sensitivity.GLOBAL
    max_depth: int = Field(default=DEPTH, ge=0, le=MAX_DEPTH)
    prune: bool = True

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        native = as_add_remove(dataset, loss)
        id3 = self._id3(native.dataset)
        splitting, budget = id3.splitting(native.dataset), id3.budget(native.loss)
        task = id3.task
        own = budget.steps(self._selector(), task.levels, len(task.labels))
        accuracy = self._accuracy(id3, budget, splitting.one_way)
        accuracy |= self._expectation(native.dataset, native.loss, self.max_depth)
        accuracy["explanation"] += expected(native.loss)
        if self.sensitivity is Sensitivity.GLOBAL and SCORE_TARGET in accuracy:
            unit = splitting.grid.cap / 2**splitting.grid.bits
            accuracy["utility_below_best"] = significant(accuracy[SCORE_TARGET] * unit)
        return Price((*for_group(own, native.members), *native.steps), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        if not target.keys() <= {*self.targets}:
            names = sorted(self.targets)
            raise UnsupportedQuery("no such accuracy target", supported={"target": names})
        # Any loss serves here, because only the converted dataset is needed, which is the same for
        # every loss. It has the neighbouring relation ``add_remove``, in which the mechanism works.
        native = as_add_remove(dataset, charge_for_add_remove(dataset, PrivacyLoss(NANO))).dataset
        id3 = self._id3(native)
        shares = [1]
        if COUNT_TARGET in target:
            shares.append(share_for_count_error(target[COUNT_TARGET], CONFIDENCE))
        if SCORE_TARGET in target:
            count = len(id3.task.attributes)
            error, one_way = target[SCORE_TARGET], id3.splitting(native).one_way
            split = self._selector().loss_for(count, error, 1, CONFIDENCE, one_way=one_way)
            shares.append(split.epsilon_nano)
        return charge_for_add_remove(dataset, loss_for_shares(max(shares), id3.splits))

    def memory(self, dataset: Dataset) -> int:
        task = self._task(dataset)
        node = sum(task.levels) * len(task.labels)
        depth = min(node * most_nodes(task.levels, self.max_depth), MAX_COUNTERS)
        return memory(dataset, cells=max(node, depth))

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        native = as_add_remove(dataset, loss)
        return self._id3(native.dataset).work(native.dataset, native.loss)

    def lowerable(self) -> tuple[str, ...]:
        return ("max_depth",)

    def compute(self, context: QueryContext) -> Release:
        native = as_add_remove(context.dataset, context.loss)
        within = replace(context, dataset=native.dataset, loss=native.loss)
        tree = leaf_counts(grow(within, self._id3(native.dataset)), context.dataset)
        return Release({"trees": [tree], "confidence": CONFIDENCE})

    def question(self, dataset: Dataset, version: int) -> str:
        return (
            f"Which decision tree of depth at most {self.max_depth} predicts "
            f"{self._class(dataset)} from {self._inputs()} in {version_of(dataset, version)}?"
        )

    def _id3(self, dataset: Dataset) -> Id3:
        return Id3(
            self._task(dataset),
            self.max_depth,
            self.criterion,
            self.sensitivity,
            self._selector(),
            self.prune,
            self._leaves_in_rho,
        )

    def _accuracy(self, id3: Id3, budget: Budget | GaussianBudget, one_way: bool) -> dict[str, Any]:
        accuracy: dict[str, Any] = {
            "confidence": CONFIDENCE,
            COUNT_TARGET: likely_error({budget.leaf_law(budget.splits): 1}, CONFIDENCE),
            "explanation": (
                f"With this probability a class count of a leaf is off by at most `{COUNT_TARGET}`,"
                " less in leaves that stopped early."
            ),
        }
        count = len(id3.task.attributes)
        if budget.splits and count > 1:
            share, selector = budget.split_loss, self._selector()

            def lead(chance: float) -> float:
                return significant(selector.accuracy(count, share, 1, chance, one_way=one_way))

            accuracy[SCORE_TARGET] = lead(CONFIDENCE)
            accuracy["best_split"] = [
                {"chance": chance, "lead": lead(chance)} for chance in CHANCES
            ]
            accuracy["explanation"] += (
                f" With this probability the attribute of a split scores at most `{SCORE_TARGET}` "
                "below the best, and the best is chosen with at least `chance` when it leads all "
                "others by `lead`, in units of the sensitivity: under `global` a fixed amount of "
                "the criterion, otherwise one that depends on the records."
            )
        if budget.splits:
            classes = len(id3.task.labels)
            most = max(id3.task.levels)
            spread = variance(budget.leaf_law(budget.splits))
            accuracy["least_count_to_split"] = least_count_of(spread, most, classes)
            accuracy["explanation"] += (
                " A node that may ask every attribute is split from `least_count_to_split` noisy "
                "records on."
            )
        return accuracy
