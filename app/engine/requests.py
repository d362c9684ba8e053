"""The bodies of a query and of a quote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field, model_validator

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import QueryEpsilon
from app.contract.models import Body, Name
from app.queries import AnyQuery
from app.queries.parts.query import Price
from mechanisms.model.domains import Dataset
from storage.ledger.requests import Reservation

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
#: Where queries are sent to; part of what a key stands for.
PATH = "/v1/queries"


def written(value: Any) -> str:
    """Compact JSON; ValueError for what JSON has no number for."""
    return _ENCODER.encode(value)


class QueryRequest(Body):
    """One query of one dataset; ``epsilon`` is exactly what it will be charged."""

    dataset: Name
    epsilon: QueryEpsilon
    query: AnyQuery

    def priced(self, dataset: Dataset) -> Priced:
        """The request with its price for ``dataset``. Raises: UnsupportedQuery."""
        price = self.query.price(dataset, self.loss)
        # The ledger charges what the request says: a price that differs is a bug, never a rebate.
        assert price.total() == self.loss
        return Priced(self, dataset, price)

    @cached_property
    def canonical(self) -> bytes:
        """The request in one fixed form: what its hash and its history are made of."""
        return json.dumps(
            self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), ensure_ascii=True
        ).encode()

    @cached_property
    def body_hash(self) -> bytes:
        """What two requests under one key must have in common."""
        return sha256(b"POST " + PATH.encode() + b"\n" + self.canonical).digest()

    @cached_property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss(self.epsilon, self.query.delta_atto())


@dataclass(frozen=True)
class Priced:
    """A request with its price for one dataset."""

    request: QueryRequest
    dataset: Dataset
    price: Price

    def reply(self, reservation: Reservation, answer: Mapping[str, Any]) -> bytes:
        """The body of the reply, compact JSON."""
        charge = self.request.loss.as_dict()
        return written(
            {
                "id": str(reservation.query_id),
                "status": "answered",
                "dataset": self.dataset.name,
                "dataset_version": reservation.version,
                "query": self.request.query.model_dump(mode="json"),
                "charge": {**charge, "neighbouring": self.dataset.neighbouring.value},
                "remaining": reservation.remaining.as_dict(),
                "steps": [step.as_dict() for step in self.price.steps],
                "answer": answer,
                "receipt": reservation.receipt.hex(),
            }
        ).encode()


class QuoteRequest(Body):
    """The body of a query, or the same with an accuracy ``target`` in place of ``epsilon``."""

    dataset: Name
    epsilon: QueryEpsilon | None = None
    target: dict[str, Annotated[float, Field(gt=0, le=1e12)]] | None = Field(
        default=None, min_length=1, max_length=4
    )
    query: AnyQuery

    @model_validator(mode="after")
    def _one_of_both(self) -> Any:
        if (self.epsilon is None) == (self.target is None):
            raise ValueError("exactly one of epsilon and target is required")
        return self
