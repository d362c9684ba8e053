"""The bodies of a query and of a quote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property, partial
from hashlib import sha256
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import QueryEpsilon, QueryRho
from app.contract.models import Body, Name
from app.queries import AnyQuery, Query
from app.queries.parts.query import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.release import Release
from storage.ledger.requests import Reservation

#: The number of the present rules for the text of a request; it is stored with each request. It is
#: raised when a default of a query changes or a field is added. ``Query.in_form`` then restores the
#: older default, so that a retry of an older request still has the same text. With number 2, fields
#: of selections got the default ``auto``; with 3, Pareto scores got the field ``passes``; with 4,
#: forests have four trees by default in place of eight; with 5, ε and the rows decide how many.
FORM = 5

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
#: The path for sending queries; the hash of a request under an idempotency key contains it.
PATH = "/v1/queries"


def written(value: Any) -> str:
    """Returns compact JSON. Raises: ValueError for NaN and infinity."""
    return _ENCODER.encode(value)


class Amounts(Body):
    """The loss of a query: ``epsilon``, or ``rho`` of a kind that adds Gaussian noise."""

    epsilon: QueryEpsilon | None = None
    rho: QueryRho | None = Field(
        default=None,
        description=(
            "In place of `epsilon`: the charge of Gaussian noise, in accounts that allow it."
        ),
    )
    query: AnyQuery

    @model_validator(mode="after")
    def _offered(self) -> Self:
        if self.rho is not None and not self.query.gaussian:
            raise ValueError(f"rho is not offered for queries of the kind {self.query.name}")
        if self.rho is not None and self.query.delta_atto():
            raise ValueError("rho is not offered for queries with a delta")
        return self

    @cached_property
    def loss(self) -> PrivacyLoss:
        """Exactly what the query is charged; its ρ is worked out with its price if ε is named."""
        if self.rho is not None:
            return PrivacyLoss(0, 0, self.rho, 1)
        assert self.epsilon is not None, "a request without an amount has a target"
        return PrivacyLoss(self.epsilon, self.query.delta_atto())


class QueryRequest(Amounts):
    """One query of one dataset; ``epsilon`` or ``rho`` is exactly what it will be charged."""

    dataset: Name

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("exactly one of epsilon and rho is required")
        return self

    def priced(self, dataset: Dataset, in_rho: bool = False) -> Priced:
        """The request with its price for ``dataset``; repeated calls work the price out once.

        ``in_rho``: for an analyst's account that counts in ρ as well. ``app.http.fast_lane`` reuses
        this object when a sender repeats a body.
        Raises: UnsupportedQuery.
        """
        latest: Priced | None = self.__dict__.get("_priced")
        if latest is None or latest.dataset is not dataset or latest.in_rho is not in_rho:
            latest = self.__dict__["_priced"] = Priced(self, dataset, in_rho)
        return latest

    def priced_at(self, dataset: Dataset, charged_rho: int | None) -> Priced:
        """The request with the defaults under which it was charged.

        ``charged_rho``: the ρ of that charge; None for a charge from before ρ was stored.
        Danger: with the defaults of other accounts its answer might lose more ρ than was charged.
        """
        priced = self.priced(dataset)
        if charged_rho is None or priced.charge.rho_femto <= charged_rho:
            return priced
        return self.priced(dataset, True)

    @cached_property
    def canonical(self) -> bytes:
        """The request in one fixed JSON form, for its hash and for the history of queries."""
        # An amount without a value is left out of the text. So requests without ``rho`` keep the
        # text, and the hash, that they had before ``rho`` existed.
        unnamed = {name for name in ("epsilon", "rho") if getattr(self, name) is None}
        whole = self.model_dump(mode="json", exclude=unnamed)
        return json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()

    @cached_property
    def body_hash(self) -> bytes:
        """The hash that every request under the same idempotency key must have."""
        return sha256(b"POST " + PATH.encode() + b"\n" + self.canonical).digest()

    def equals(self, form: int, stored: bytes) -> bool:
        """Whether a stored request is this one, in the form in which it was stored.

        Fields that came later have their defaults in it, as they had when it was paid.
        """
        if not 1 <= form <= FORM:
            return False
        try:
            present = QueryRequest.model_validate_json(stored)
        except ValueError:
            return False  # By today's rules the stored request is invalid, so the two differ.
        return present.in_form(form).canonical == self.in_form(form).canonical

    def in_form(self, form: int) -> QueryRequest:
        """The request with the defaults of this number of ``FORM``, under which it was stored."""
        query = self.query if form == FORM else self.query.in_form(form)
        return QueryRequest.model_construct(
            dataset=self.dataset, epsilon=self.epsilon, rho=self.rho, query=query
        )


def answer_text(query: Query, dataset: Dataset, version: int, answer: Mapping[str, Any]) -> str:
    """The compact JSON of an answer, which begins with its question. It is part of the work."""
    return written({"question": query.question(dataset, version), **answer})


class Priced:
    """A request with its price for one dataset, and the public parts of its reply.

    These parts follow from the request and the dataset, so their JSON is written once and reused.
    """

    def __init__(self, request: QueryRequest, dataset: Dataset, in_rho: bool = False) -> None:
        loss, self.in_rho = request.loss, in_rho
        #: The query that is computed. Danger: it must have the same defaults as the query that is
        #: priced. Otherwise its answer could lose more than is charged.
        self.query: Query = request.query.in_rho() if in_rho else request.query
        price = self.query.price(dataset, loss)
        # The ledger charges the loss that the request names. A price that differs from it is a bug.
        assert price.total() == loss
        self.dataset, self.cost = dataset, self.query.cost(dataset, loss)
        self.charge = price.charge()
        query = written(request.query.model_dump(mode="json"))
        charge = written({**self.charge.as_charge(), "neighbouring": dataset.neighbouring.value})
        steps = written([step.as_dict() for step in price.steps])
        self._text_of = partial(answer_text, request.query, dataset)
        self._answered = f'"status":"answered","dataset":{written(dataset.name)},"dataset_version":'
        self._charged = f',"query":{query},"charge":{charge},"remaining":'
        self._spent = f',"steps":{steps},"answer":'

    def compute(self, context: QueryContext, charged_rho: int | None) -> Release:
        """Compute the answer. ``charged_rho``: of a later attempt, the ρ of the first.

        Danger: the version that charged may have divided ε otherwise. What costs more ρ now must
        not be computed: its charge is kept, without an answer.
        Raises: UnsupportedQuery then, before anything private is read; as ``Query.compute``.
        """
        if charged_rho is not None and charged_rho < self.charge.rho_femto:
            raise UnsupportedQuery("an earlier version charged less ρ than the query costs now")
        return self.query.compute(context)

    def reply(self, reservation: Reservation, answer: Mapping[str, Any]) -> bytes:
        """The body of the reply, compact JSON. Its answer begins with the question."""
        text = self._text_of(reservation.version, answer)
        return (
            f'{{"id":"{reservation.query_id}",{self._answered}{reservation.version}{self._charged}'
            f"{written(reservation.remaining.as_dict(reservation.has_rho))}{self._spent}{text},"
            f'"receipt":"{reservation.receipt.hex()}"}}'
        ).encode()


class QuoteRequest(Amounts):
    """The body of a query, or the same with an accuracy ``target`` in place of ``epsilon``."""

    dataset: Name
    target: dict[str, Annotated[float, Field(gt=0, le=1e12)]] | None = Field(
        default=None, min_length=1, max_length=4
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> Any:
        if [self.epsilon, self.rho, self.target].count(None) != 2:
            raise ValueError("exactly one of epsilon, rho and target is required")
        return self
