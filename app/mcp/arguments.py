"""The arguments of the tools, as strict as the bodies of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from app.contract.models import Body, Name
from app.http.dependencies import DEFAULT_LIMIT
from app.queries import QUERY_KINDS

Limit = Annotated[int, Field(ge=1, le=1000, description="The most items of one page.")]
Cursor = Annotated[
    str, Field(max_length=512, description="The member `next` of the page before, unchanged.")
]
#: Seconds that a call waits for a deadline. Many clients end a call after 60 seconds.
Wait = Annotated[
    float, Field(ge=0, le=300, description="The most seconds to wait for the release.")
]
WAIT = 20.0

Text = Annotated[str, Field(max_length=64)]
if TYPE_CHECKING:
    KindName: TypeAlias = str
else:
    KindName = Literal[tuple(QUERY_KINDS)]
#: The members of a query's body as tools list them. The whole schema of ``query`` is 25 kB, and
#: agents pay for every word.
QUERY_MEMBERS: dict[str, Any] = {
    "dataset": {"type": "string", "description": "The name of the dataset."},
    "query": {
        "type": "object",
        "description": "The query. `describe` with a `kind` lists the members of that kind.",
        "properties": {"kind": {"type": "string", "enum": list(QUERY_KINDS)}},
        "required": ["kind"],
    },
    "epsilon": {
        "type": ["string", "number"],
        "description": 'The privacy loss that is charged, such as "0.1".',
    },
    "rho": {
        "type": ["string", "number"],
        "description": "In place of epsilon: Gaussian noise, in accounts that allow it.",
    },
}
#: The JSON schema of an accuracy target, which the tool ``quote`` takes in place of ``epsilon``.
TARGET: dict[str, Any] = {
    "type": "object",
    "description": "In place of epsilon: an accuracy to reach, by its name in a quote.",
    "additionalProperties": {"type": "number"},
}


class DatasetsArguments(Body):
    """One page of the datasets."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


class DescribeArguments(Body):
    """A dataset, a query kind, or both."""

    dataset: Name | None = Field(default=None, description="The name of a dataset.")
    kind: KindName | None = Field(default=None, description="A query kind.")

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if self.dataset is None and self.kind is None:
            raise ValueError("a dataset or a kind is required")
        return self


class AskOptions(Body):
    """The arguments of ``ask`` beside the body of the query."""

    idempotency_key: Annotated[str, Field(pattern=r"^[\x20-\x7e]{1,255}$")] | None = None
    wait: Wait = WAIT


class AnswersArguments(Body):
    """One query by its ``id``, or one page of the history."""

    id: Text | None = Field(default=None, description="The id of a query, for its whole reply.")
    wait: Wait = WAIT
    dataset: Name | None = Field(default=None, description="Only queries on this dataset.")
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None


class VerifyArguments(Body):
    """``verify`` takes no argument."""


def schema_of(model: type[Body]) -> dict[str, Any]:
    """The JSON Schema of the arguments of a tool."""
    return {**model.model_json_schema(), "type": "object"}


def schema_with_query(more: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a query's body with more members."""
    return {
        "type": "object",
        "properties": {**QUERY_MEMBERS, **more},
        "required": ["dataset", "query"],
        "additionalProperties": False,
    }
