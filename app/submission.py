"""The bodies of a query and of a quote."""

from __future__ import annotations

import json
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field, model_validator

from accounting.privacy_loss import PrivacyLoss
from app.amounts import QueryEpsilon
from app.models import Body, Name
from app.queries import AnyQuery
from app.queries.query import Price
from mechanisms.domains import Dataset

#: Where queries are sent to; part of what a key stands for.
PATH = "/v1/queries"


class QueryRequest(Body):
    """One query of one dataset; ``epsilon`` is exactly what it will be charged."""

    dataset: Name
    epsilon: QueryEpsilon
    query: AnyQuery

    def price(self, dataset: Dataset) -> Price:
        """What ``query`` does with the loss; for one dataset it is worked out once."""
        known = self.__dict__.get("_price")
        if known is None or known[0] is not dataset:
            price = self.query.price(dataset, self.loss)
            # The ledger is charged what was asked for: a price that differs is a bug, no rebate.
            assert price.total() == self.loss
            known = self.__dict__["_price"] = dataset, price
        found: Price = known[1]
        return found

    @cached_property
    def shown(self) -> dict[str, Any]:
        """The query with all its fields, as replies repeat it."""
        return self.query.model_dump(mode="json")

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
