"""The base of every body: strict, frozen, and closed to unknown fields.

Bodies are validated from their JSON text (``app.http.route``), so that ``tuple`` fields take
arrays and enumerations take their text while ``true`` is never 1 and ``"5"`` is never 5.
"""

from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints

NAME_PATTERN = r"^[A-Za-z0-9_.-]{1,100}$"

#: Names of users, datasets and attributes: safe in paths, headers, logs and on every database.
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]

Item = TypeVar("Item")


class Body(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Reply(BaseModel):
    """What a client receives; ``model_validate`` reads its fields from a row of storage.

    A field whose name or form differs says in its annotation where it comes from, and how.
    """

    model_config = ConfigDict(
        frozen=True, allow_inf_nan=False, from_attributes=True, populate_by_name=True
    )


class Listing(Reply, Generic[Item]):
    """One page, newest first; ``next`` is the cursor of the page after it, or null."""

    items: list[Item]
    next: str | None
