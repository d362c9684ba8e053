"""The source and the table from which the owner of a dataset pulls records."""

from __future__ import annotations

import json
from typing import NamedTuple

from sqlalchemy import Connection, select, update

from storage.database.tables import dataset

_d = dataset.c


class Attachment(NamedTuple):
    """The name of a source in the operator's file, and a table of its listing."""

    source: str
    table: str


def attachment_of(connection: Connection, dataset_id: int) -> Attachment | None:
    """The attachment of a dataset; None if it has none."""
    text = connection.execute(select(_d.source).where(_d.id == dataset_id)).scalar_one()
    return None if text is None else Attachment(*json.loads(text))


def set_attachment(connection: Connection, dataset_id: int, attachment: Attachment | None) -> None:
    """Replace the attachment of a dataset; None removes it."""
    text = None if attachment is None else json.dumps(attachment, ensure_ascii=False)
    connection.execute(update(dataset).where(_d.id == dataset_id).values(source=text))
