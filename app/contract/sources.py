"""Sources of records, and the source of a dataset, as owners see them."""

from typing import Annotated, Literal

from pydantic import StringConstraints

from app.contract.models import Body, Name, Reply

#: The name of a table in the listing of a source. It is only compared with that listing, so it
#: cannot address anything else.
TableName = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class SourceIn(Body):
    """The source and the table from which a dataset's records are pulled."""

    source: Name
    table: TableName


class SourceOut(Reply):
    """A source that the caller may use. ``tables`` is null if it cannot be listed now."""

    name: str
    kind: Literal["postgresql", "parquet"]
    tables: list[str] | None


class AttachmentOut(Reply):
    """The source and the table of a dataset."""

    dataset: str
    source: str
    table: str
