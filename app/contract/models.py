"""The base of every body: strict, frozen, and closed to unknown fields.

``app.http.route`` validates bodies from their JSON text. ``tuple`` fields therefore accept arrays,
and enumerations accept their text, while ``true`` is never read as 1, nor ``"5"`` as 5.
"""

from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

NAME_PATTERN = r"^[A-Za-z0-9_.-]{1,100}$"

#: A name of a user, dataset or attribute. Its characters are safe in paths, headers, logs and every
#: database.
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]


def _no_path_segment(name: str) -> str:
    if name in (".", ".."):
        raise ValueError("a name of one or two dots means a folder in a path")
    return name


#: The name of a new user or dataset: not ``.`` or ``..``, which clients would remove from a path.
NewName = Annotated[Name, AfterValidator(_no_path_segment)]

Item = TypeVar("Item")


class Body(BaseModel):
    """The base of all bodies that a client sends."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class Reply(BaseModel):
    """The base of all replies. ``model_validate`` reads the fields from a row of storage.

    If the name or the form of a field differs from the row, its annotation has the conversion.
    """

    model_config = ConfigDict(
        frozen=True, allow_inf_nan=False, from_attributes=True, populate_by_name=True
    )


class Listing(Reply, Generic[Item]):
    """One page of a list. ``next``: the cursor of the next page, or null on the last page."""

    items: list[Item]
    next: str | None
