"""The body of ``top_k`` queries: k candidates without replacement, in the order of the draws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from accounting.composition import for_group
from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Delta
from app.queries.parts.candidates import AttributeValues
from app.queries.parts.conversion import mechanism_loss
from app.queries.parts.cost import memory
from app.queries.parts.query import Price, QueryContext
from app.queries.parts.scored_selection import Drawing, ScoredSelection
from app.queries.parts.utilities import UtilityTerm
from app.queries.top_k.open_values import CHOICE, OpenTop
from mechanisms.model.domains import Dataset, TableDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.release import Release
from mechanisms.model.work import Work
from mechanisms.selection import Choice
from mechanisms.tables.grouping import Levels
from mechanisms.tables.open_groups import ROW_BYTES, OpenPlan, is_open

#: The largest k. Peeled draws (one by one) take time in proportion to k times the candidates.
MAX_K = 1000


class TopK(ScoredSelection):
    """Selects k candidates, likely those with the highest utility."""

    name: ClassVar[str] = "top_k"
    title: ClassVar[str] = "Private top-k"
    description: ClassVar[str] = (
        "k candidates out of a public list, likely those of the highest utility: drawn one after "
        "another, as one set, or as the largest of a noisy vector with its values. Values of an "
        "open attribute come from a private list, above a public threshold, for a delta."
    )

    gaussian: ClassVar[bool] = True

    kind: Literal["top_k"]
    k: int = Field(ge=1, le=MAX_K, description="How many candidates to select.")
    draws: Literal["auto", "peeled", "one_shot"] = "auto"
    rescore: bool = Field(
        default=False,
        description="For `pareto`: each draw compares only the candidates that remain.",
    )

    delta: Delta = Field(
        default=0,
        description="Of the values of an attribute whose values are open: above 0, charged.",
    )

    def drawing(self) -> Drawing:
        return Drawing(self.k, self.draws, self.rescore)

    def delta_atto(self) -> int:
        return self.delta

    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        if not self._is_open(dataset):
            if self.delta:
                raise UnsupportedQuery(
                    "only the values of an open attribute take a delta", supported={"delta": "0"}
                )
            return super().price(dataset, loss)
        top, (_, conversion) = self._open_top(dataset, loss), mechanism_loss(dataset, loss)
        steps = for_group(top.plan.steps(), dataset.records_per_person)
        return Price((*steps, *conversion), top.accuracy, CHOICE.as_dict(), order_preserving=True)

    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        if self._is_open(dataset):
            raise UnsupportedQuery(
                "the error of open values follows from epsilon and delta together",
                supported={"target": []},
            )
        return super().loss_reaching(dataset, target)

    def memory(self, dataset: Dataset) -> int:
        if self._is_open(dataset):
            return memory(dataset, record=ROW_BYTES)
        return super().memory(dataset)

    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        if self._is_open(dataset):
            return self._open_top(dataset, loss).plan.work()
        return super().work(dataset, loss)

    def compute(self, context: QueryContext) -> Release:
        if not self._is_open(context.dataset):
            return super().compute(context)
        share, _ = mechanism_loss(context.dataset, context.loss)
        return Release(self._open_top(context.dataset, context.loss).answer(context.at(share)))

    def _is_open(self, dataset: Dataset) -> bool:
        return (
            isinstance(self.candidates, AttributeValues)
            and isinstance(dataset.domain, TableDomain)
            and is_open(Levels(self.candidates.values_of), dataset)
        )

    def _open_top(self, dataset: Dataset, loss: PrivacyLoss) -> OpenTop:
        """The selection of open values. Raises: UnsupportedQuery for options that do not fit."""
        assert isinstance(self.candidates, AttributeValues)
        if loss.unpriced:
            raise UnsupportedQuery(
                "the values of an open attribute take epsilon and delta",
                supported={"amount": ["epsilon"]},
            )
        if not self._fits_open():
            raise UnsupportedQuery(
                "the values of an open attribute are selected by their noisy counts",
                supported={
                    "utilities": ["count"],
                    "sensitivity": ["auto", "global"],
                    "selector": ["auto", "laplace"],
                    "draws": ["auto"],
                },
            )
        share, _ = mechanism_loss(dataset, loss)
        return OpenTop(OpenPlan.of_counts(self.candidates.values_of, dataset, share), self.k)

    def _fits_open(self) -> bool:
        """True if the options ask for nothing but a noisy vector of counts."""
        return (
            self.utilities == (UtilityTerm(name="count"),)
            and self.objective == "single"
            and self.sensitivity in ("auto", "global")
            and self.selector in ("auto", "laplace")
            and self.draws == "auto"
            and not self.rescore
            and self.stages is None
        )

    def answer(self, labels: list[int | str], choice: Choice) -> dict[str, Any]:
        return {"selected": labels, "ordered": choice.ordered}
