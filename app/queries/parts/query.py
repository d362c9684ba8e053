"""The base class of all query bodies. A query is priced first and computed after its charge.

Everything here is pure: no clock, no database, no HTTP.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from accounting.composition import Step, total, total_rho
from accounting.privacy_loss import PrivacyLoss
from app.contract.models import Body
from app.queries.parts.cost import Cost, memory
from mechanisms.model.context import QueryContext as QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.release import Release
from mechanisms.model.work import Work


@dataclass(frozen=True)
class Price:
    """The steps that spend a loss, and their predicted accuracy, from public facts alone."""

    steps: tuple[Step, ...]
    #: Returns the predictions for a quote. Only a quote calls it; the answer to a query does not.
    accuracy: Callable[[], Mapping[str, Any]]
    #: The values that the service chooses for fields of the request that are ``auto`` or left out,
    #: by field. Empty if there are none.
    resolved: Mapping[str, str] = field(default_factory=dict)
    #: True if a higher utility always gets a higher score; False if dampening by the sensitivity
    #: may change the order; None if the query selects nothing.
    order_preserving: bool | None = None

    def total(self) -> PrivacyLoss:
        return total(self.steps)

    def rho_femto(self) -> int:
        """The charge in ρ, in whole 10⁻¹⁵, for accounts that count in ρ as well."""
        return total_rho(self.steps)

    def charge(self) -> PrivacyLoss:
        """What every account is charged: ε, δ and ρ."""
        return replace(self.total(), rho_femto=self.rho_femto())


class CatalogueEntry(Body):
    """The facts about a query kind that the catalogue shows."""

    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    #: The names of the accuracies that a request for a quote may set as targets.
    targets: ClassVar[tuple[str, ...]] = ()
    #: Whether a request may name ``rho`` in place of ``epsilon``, for Gaussian noise.
    gaussian: ClassVar[bool] = False

    @classmethod
    def catalogue(cls) -> dict[str, Any]:
        """Returns the catalogue entry of the kind: its parameters with types and defaults."""
        schema = cls.model_json_schema()
        return {
            "kind": cls.name,
            "title": cls.title,
            "description": cls.description,
            "parameters": {k: v for k, v in schema["properties"].items() if k != "kind"},
            "required": [name for name in schema.get("required", []) if name != "kind"],
            "rho": cls.gaussian,
            "definitions": schema.get("$defs", {}),
        }


class Query(CatalogueEntry, ABC):
    """The base of the bodies of all query kinds."""

    def delta_atto(self) -> int:
        """Returns the δ of the query, in units of 10⁻¹⁸; it is 0 unless a kind overrides this."""
        return 0

    def in_form(self, form: int) -> Self:
        """Returns the query with the defaults that a stored request of this form had.

        A request was stored with its defaults written out, so a retry that leaves them out equals
        it in this form. ``app.engine.requests`` numbers the forms.
        """
        # No default of most kinds has ever changed, so the query is the same in every form (version
        # of the defaults).
        del form
        return self

    def in_rho(self) -> Self:
        """Returns the query as accounts that count in ρ as well resolve its defaults.

        The loss stays what was asked for, and the charge in ρ is smaller. The request as it is
        stored and shown stays the same.
        """
        # Most kinds have the same defaults for accounts that count in ρ and for others.
        return self

    @abstractmethod
    def price(self, dataset: Dataset, loss: PrivacyLoss) -> Price:
        """Returns the steps that would spend ``loss``; they add up to it exactly.

        Raises: UnsupportedQuery when the query does not fit the dataset's public description.
        Privacy: reads no records, so a quote is free.
        """

    @abstractmethod
    def loss_reaching(self, dataset: Dataset, target: Mapping[str, float]) -> PrivacyLoss:
        """Returns the least loss, in whole 10⁻⁹, that is predicted to reach an accuracy target.

        Raises: UnsupportedQuery if this kind has no such target or no loss reaches it.
        """

    def cost(self, dataset: Dataset, loss: PrivacyLoss) -> Cost:
        """Returns the public worst case of ``compute``, for a query that fits the dataset.

        Privacy: a function of the description, of the query and of its charge alone.
        """
        work = self.work(dataset, loss)
        return Cost(self.memory(dataset), work, self.cells(dataset))

    def cells(self, dataset: Dataset) -> int:  # noqa: ARG002 - some kinds read it
        """Returns the public number of cells of a released table."""
        return 0

    def memory(self, dataset: Dataset) -> int:
        """Returns the public bound on the bytes that ``compute`` takes at the same time."""
        return memory(dataset)

    @abstractmethod
    def work(self, dataset: Dataset, loss: PrivacyLoss) -> Work:
        """Returns the public bound on the work of ``compute``, as ``cost`` does.

        Each kind of work needs an example query that has it, because this machine is timed by the
        examples.
        """

    def lowerable(self) -> tuple[str, ...]:
        """Returns the parameters that lower the cost when they are lowered."""
        return ()

    def mechanisms(self) -> set[str]:
        """Returns the names of the mechanisms that the request itself names, for a certificate.

        Danger: no other fields are read. They hold names that the analyst or the owner chose
        freely, and such a name could equal that of a mechanism.
        """
        named = (getattr(self, name, None) for name in ("selector", "mechanism"))
        return {name for name in named if name is not None}

    @abstractmethod
    def compute(self, context: QueryContext) -> Release:
        """Returns the answer. Privacy: ``context.loss`` under the relation of the dataset."""

    @abstractmethod
    def question(self, dataset: Dataset, version: int) -> str:
        """Returns the query as one plain English question about this version of the dataset.

        It reads public facts only. The query must fit the dataset, so that ``price`` accepts it.
        """

    def names_nodes(self) -> bool:
        """True if the answer may hold names of nodes."""
        return False
