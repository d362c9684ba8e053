"""Queries as the history lists them, and quotes."""

from operator import itemgetter
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from app.contract.models import Reply
from app.contract.times import Moment


class QueryOut(Reply):
    """One query. ``created``: when it was charged. ``released``: when its answer left.

    Owners and auditors read both times by the minute. For them a query runs until the first full
    minute after its answer left.

    ``question``: the query as one plain sentence; null if this version offers it no more.
    """

    id: Annotated[str, BeforeValidator(str)]
    status: str
    analyst: str
    dataset: str
    dataset_version: int = Field(validation_alias="version")
    query: Annotated[dict[str, Any], BeforeValidator(itemgetter("query"))] = Field(
        validation_alias="request"
    )
    question: str | None = None
    charge: dict[str, str | None] = Field(validation_alias="stated_charge")
    created: Moment = Field(validation_alias="created_us")
    released: Moment | None = Field(validation_alias="release_us")

    @classmethod
    def of(cls, row: Any, question: str | None) -> Self:
        """A row of the history with its question."""
        return cls.model_validate(
            {name: getattr(row, name) for name in _OF_ROW} | {"question": question}
        )


#: The attributes of a row of the query history that a reply shows. The question is not among them,
#: because it is derived from the request.
_OF_ROW = [
    str(field.validation_alias or name)
    for name, field in QueryOut.model_fields.items()
    if name != "question"
]


class ChargeOut(Reply):
    """``epsilon``: null for a query that names ``rho``, because its loss has no finite ε."""

    epsilon: str | None
    delta: str
    rho: str
    neighbouring: str


class QuoteOut(Reply):
    """The charge of a query, step by step, and the accuracy to expect of its answer.

    ``affordable``: True if the charge fits every account that the query would be charged to.
    ``reason``: which account would refuse the charge and why, in words; null if it is affordable.
    ``seconds``: from the begin of the query to its deadline, at which its answer leaves.
    ``fits_more``: how many such queries fit one after another, if nothing else is charged.
    ``resolved``: what the service takes for fields that are `auto` or left out, with a reason for
    `auto`. ``order_preserving``: whether the scores of a selection follow the order of the
    utilities; null for other queries.
    """

    charge: ChargeOut
    steps: list[dict[str, Any]]
    accuracy: dict[str, Any]
    affordable: bool
    reason: str | None
    seconds: float
    fits_more: int | None
    resolved: dict[str, str]
    order_preserving: bool | None
