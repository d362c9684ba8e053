"""What the body of a query is: frozen and strict; priced first, and computed once it is paid.

Everything here is pure: no clock, no database, no HTTP.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from accounting.composition import Step, total
from accounting.privacy_loss import PrivacyLoss
from app.contract.models import Body
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.model.release import Release


@dataclass(frozen=True)
class Price:
    """The steps that a loss is spent on, and what they promise; made of public facts alone."""

    steps: tuple[Step, ...]
    #: The predictions of a quote. A query that is asked does not work them out.
    accuracy: Callable[[], Mapping[str, Any]]

    def total(self) -> PrivacyLoss:
        return total(self.steps)


@dataclass(frozen=True)
class QueryContext:
    """Everything that an answer is computed with, beside the query itself."""

    records: Records
    #: The public description of ``records``.
    dataset: Dataset
    #: The charge of the query; it was reserved before the records were opened.
    loss: PrivacyLoss
    randomness: Randomness
    executor: Executor


class CatalogueEntry(Body):
    """The facts about a kind that the catalogue shows."""

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    #: The accuracies that a quote may have to reach.
    targets: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def catalogue(cls) -> dict[str, Any]:
        """The entry of the catalogue: parameters with their types and defaults."""
        schema = cls.model_json_schema()
        return {
            "kind": cls.name,
            "title": cls.title,
            "description": cls.description,
            "parameters": {k: v for k, v in schema["properties"].items() if k != "kind"},
            "required": [name for name in schema.get("required", []) if name != "kind"],
            "definitions": schema.get("$defs", {}),
        }


class Query(CatalogueEntry, ABC):
    """The base of the bodies of all query kinds."""

    def delta_atto(self) -> int:
        """The δ that the query asks for: none, unless its kind says otherwise."""
        return 0

    @abstractmethod
    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        """How ``loss`` would be spent; the steps add up to it exactly.

        Raises: UnsupportedQuery when the query does not fit the dataset's public description.
        Privacy: reads no records, so a quote is free.
        """

    @abstractmethod
    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        """The least loss, in whole nanos, that is predicted to reach an accuracy target.

        Raises: UnsupportedQuery when this kind has no such target or no loss reaches it.
        """

    @abstractmethod
    def compute(self, context: QueryContext) -> Release:
        """The answer. Privacy: ``context.loss`` under the relation of the dataset."""

    @abstractmethod
    def question(self, dataset: Dataset, version: int) -> str:
        """One plain English sentence: what the query asks of this version of the dataset.

        It is made of public facts. The query must fit the dataset: ``price`` accepts it.
        """

    def is_light(self, dataset: Dataset) -> bool:  # noqa: ARG002 - read by other kinds
        """True if ``compute`` always takes less time than to wake a thread for it."""
        return False

    def names_nodes(self) -> bool:
        """True if the answer may hold names of nodes."""
        return False
