"""Everything, besides the request itself, that the computation of an answer needs."""

from dataclasses import dataclass, replace
from typing import Self

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import GraphRecords, Records, TableRecords, records_of


@dataclass(frozen=True)
class QueryContext:
    """Private records with their public description, a loss, and the means to compute."""

    records: Records
    dataset: Dataset
    #: The charge of a query, reserved before the records were opened, or a part of that charge.
    loss: PrivacyLoss
    randomness: Randomness
    executor: Executor

    @property
    def table(self) -> TableRecords:
        """The records of a table. Raises: TypeError for any others, a fault of the caller."""
        return records_of(TableRecords, self.records)

    @property
    def graph(self) -> GraphRecords:
        """The records of a graph. Raises: TypeError for any others, a fault of the caller."""
        return records_of(GraphRecords, self.records)

    def at(self, loss: PrivacyLoss) -> Self:
        """The same context with another loss, such as the share of one release."""
        return self if loss is self.loss else replace(self, loss=loss)
