"""Whether a coin that reads no records shows a side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.query import Price, Query, QueryContext
from app.queries.parts.sentences import version_of
from mechanisms.model.domains import Dataset
from mechanisms.model.release import Release
from mechanisms.model.work import NOTHING, Work


class Coin(Query):
    name: ClassVar[str] = "coin"
    title: ClassVar[str] = "A made-up coin"
    description: ClassVar[str] = "Says a side, whatever the records."
    targets: ClassVar[tuple[str, ...]] = ("wrong_side",)

    kind: Literal["coin"]
    side: Literal["heads", "tails"]
    tosses: int = Field(default=7, ge=1)

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        del dataset
        return Price((Step("toss of a coin", loss),), lambda: {"wrong_side": 0.5})

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        del dataset, target
        return PrivacyLoss.parse("1")

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        del dataset, loss
        return NOTHING

    def compute(self, context: QueryContext) -> Release:
        del context
        return Release({"shows": self.side})

    def question(self, dataset: Dataset, version: int) -> str:
        return f"Does the coin of {version_of(dataset, version)} show {self.side}?"
