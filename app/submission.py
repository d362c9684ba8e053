"""The bodies of a query and of a quote."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from accounting.privacy_loss import PrivacyLoss
from app.amounts import QueryEpsilon
from app.models import Body, Name
from app.queries import AnyQuery


class QueryRequest(Body):
    """One query of one dataset; ``epsilon`` is exactly what it will be charged."""

    dataset: Name
    epsilon: QueryEpsilon
    query: AnyQuery

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
