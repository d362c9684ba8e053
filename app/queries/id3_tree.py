"""``tree`` by ``id3``: grown from the root, with a share of the loss a level."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from accounting.privacy_loss import PrivacyLoss
from app.queries.conversion import as_add_remove, charge_for_add_remove
from app.queries.growing_tree import TreeQuery, of_table
from app.queries.query import Price
from app.queries.selection import CONFIDENCE, TARGET, significant
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.model.release import Release
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.model.tree_shape import MAX_DEPTH
from mechanisms.trees.count_accuracy import count_error, share_for_count_error
from mechanisms.trees.id3 import Budget, Id3, grow
from mechanisms.trees.id3.stop_rule import least_count

#: How far a noisy class count of a leaf at the full depth is off.
COUNT_TARGET = "leaf_count_error"
#: Chances of the best split that a quote gives the needed lead for.
CHANCES = (0.5, 0.9, 0.99)


class Id3Tree(TreeQuery):
    """One tree whose leaves carry noisy class counts."""

    title: ClassVar[str] = "Private ID3"
    description: ClassVar[str] = (
        "Each level spends a share of the loss on noisy record counts, which stop small nodes, and "
        "one on the choice of the splits; leaves carry noisy class counts."
    )
    source: ClassVar[str] = (
        "Local Dampening, PVLDB 14(4), 2021, section 5.2; Friedman and Schuster, KDD 2010"
    )

    algorithm: Literal["id3"] = "id3"
    criterion: Literal["information_gain", "gini", "max"] = "gini"
    sensitivity: Sensitivity = Sensitivity.GLOBAL
    max_depth: int = Field(default=5, ge=0, le=MAX_DEPTH)
    prune: bool = True

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        native = as_add_remove(dataset, loss)
        asked = self._asked(native.dataset)
        splitting, budget = asked.splitting(native.dataset), asked.budget(native.loss)
        task = asked.task
        own = budget.steps(self.selector, task.levels, len(task.labels))
        accuracy = self._accuracy(asked, budget)
        if self.sensitivity is Sensitivity.GLOBAL and TARGET in accuracy:
            unit = splitting.grid.cap / 2**splitting.grid.bits
            accuracy["utility_below_best"] = significant(accuracy[TARGET] * unit)
        return Price((*own, *native.steps), lambda: accuracy)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        known = {COUNT_TARGET, TARGET}
        if not target.keys() <= known:
            raise UnsupportedQuery("no such accuracy target", supported={"target": sorted(known)})
        # Any charge shows the dataset as the mechanism sees it.
        asked = self._asked(as_add_remove(dataset, charge_for_add_remove(dataset, ONE)).dataset)
        shares = [1]
        if COUNT_TARGET in target:
            shares.append(share_for_count_error(target[COUNT_TARGET], CONFIDENCE))
        if TARGET in target:
            count = len(asked.task.attributes)
            found = self._selector().loss_for(count, target[TARGET], 1, CONFIDENCE)
            shares.append(found.epsilon_nano)
        loss = PrivacyLoss(max(shares) * (2 * asked.splits + 1))
        return charge_for_add_remove(dataset, loss)

    def compute(
        self,
        records: Records,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> Release:
        native = as_add_remove(dataset, loss)
        asked = self._asked(native.dataset)
        tree = grow(of_table(records), native.dataset, asked, native.loss, randomness, executor)
        return Release({"trees": [tree]})

    def _asked(self, dataset: Dataset) -> Id3:
        return Id3(
            self._task(dataset),
            self.max_depth,
            self.criterion,
            self.sensitivity,
            self._selector(),
            self.prune,
        )

    def _accuracy(self, asked: Id3, budget: Budget) -> dict[str, Any]:
        accuracy: dict[str, Any] = {
            "confidence": CONFIDENCE,
            COUNT_TARGET: count_error(budget.leaf(budget.splits), CONFIDENCE),
            "explanation": (
                f"With this probability a class count of a leaf is off by at most `{COUNT_TARGET}`,"
                " less in leaves that stopped early."
            ),
        }
        count = len(asked.task.attributes)
        if budget.splits and count > 1:
            share, selector = PrivacyLoss(budget.share), self._selector()
            accuracy[TARGET] = significant(selector.accuracy(count, share, 1, CONFIDENCE))
            accuracy["best_split"] = [
                {"chance": chance, "lead": significant(selector.accuracy(count, share, 1, chance))}
                for chance in CHANCES
            ]
            accuracy["explanation"] += (
                f" With this probability the attribute of a split scores at most `{TARGET}` below "
                "the best, and the best is chosen with at least `chance` when it leads all others "
                "by `lead`, in units of the sensitivity: under `global` a fixed amount of the "
                "criterion, otherwise one that depends on the records."
            )
        if budget.splits:
            classes = len(asked.task.labels)
            most = max(asked.task.levels)
            accuracy["least_count_to_split"] = least_count(budget.share, most, classes)
            accuracy["explanation"] += (
                " A node that may ask every attribute is split from `least_count_to_split` noisy "
                "records on."
            )
        return accuracy


ONE = PrivacyLoss(10**9)
