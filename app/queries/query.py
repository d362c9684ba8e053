"""What a query kind is: a frozen, strict body that can be priced, and computed once it is paid.

A new kind is one file in this package and one line in ``app.queries``. Everything here is pure:
no clock, no database, no HTTP.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from accounting.composition import Step, total
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.model.release import Release


@dataclass(frozen=True)
class Price:
    """The steps that a loss is spent on, and what they promise; made of public facts alone."""

    steps: tuple[Step, ...]
    #: What a quote says beside the price; a query that is asked has no use for it.
    accuracy: Callable[[], Mapping[str, Any]]

    def total(self) -> PrivacyLoss:
        return total(self.steps)


class Query(BaseModel, ABC):
    """The base of all query kinds."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]

    def delta_atto(self) -> int:
        """The δ that the query asks for: none, unless its kind says otherwise."""
        return 0

    @abstractmethod
    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        """How ``loss`` would be spent; the steps add up to it exactly.

        Raises: UnsupportedQuery when the query does not fit the dataset's public description.
        Privacy: reads no records, so it may be asked for free.
        """

    @abstractmethod
    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        """The least loss, in whole nanos, that is predicted to reach an accuracy target.

        Raises: UnsupportedQuery when this kind has no such target or no loss reaches it.
        """

    @abstractmethod
    def compute(
        self,
        records: Records,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> Release:
        """The answer. Privacy: ``loss`` under the dataset's relation; it was charged before."""

    def is_light(self, dataset: Dataset) -> bool:  # noqa: ARG002 - public facts of other kinds
        """Whether no records could make ``compute`` take longer than to wake a thread for it."""
        return False

    def names_nodes(self) -> bool:
        """Whether the answer may have the names of nodes in it."""
        return False

    @classmethod
    def catalogue(cls) -> dict[str, Any]:
        """What analysts may ask for: parameters with their types and defaults."""
        schema = cls.model_json_schema()
        return {
            "kind": cls.name,
            "title": cls.title,
            "description": cls.description,
            "parameters": {k: v for k, v in schema["properties"].items() if k != "kind"},
            "required": [name for name in schema.get("required", []) if name != "kind"],
            "definitions": schema.get("$defs", {}),
        }
