"""The charges and releases of one account, in the order of its chain, with their requests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, select

from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.database import Database
from storage.database.tables import dataset, entry, query
from storage.journal.layouts import EntryKind


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """A charge, or its release, with what was charged at ``created_us`` for which request."""

    seq: int
    is_release: bool
    charge: PrivacyLoss
    created_us: int
    request: dict[str, Any]
    neighbouring: str

    @classmethod
    def of(cls, row: Row[Any]) -> ChargeRow:
        """Makes the charge from a row that the statement ``_CHARGES`` selected."""
        return cls(
            seq=row.seq,
            is_release=row.kind == EntryKind.RELEASE,
            charge=PrivacyLoss(*(getattr(row, measure.column) or 0 for measure in MEASURES)),
            created_us=row.created_us,
            request=json.loads(row.request),
            neighbouring=row.neighbouring,
        )


_e, _q = entry.c, query.c
_CHARGES: Select[Any] = (
    select(
        _e.seq,
        _e.kind,
        *(_q[measure.column] for measure in MEASURES),
        _q.created_us,
        _q.request,
        dataset.c.neighbouring,
    )
    .select_from(
        entry.join(query, _q.id == _e.query_id).join(dataset, dataset.c.id == _q.dataset_id)
    )
    .where(_e.kind.in_([int(EntryKind.CHARGE), int(EntryKind.RELEASE)]))
    .order_by(_e.seq)
)


def charges_between(
    database: Database, account_id: int, after: int, last: int, limit: int
) -> list[ChargeRow]:
    """The first ``limit`` charges and releases with ``after`` < seq ≤ ``last``, by seq."""
    statement = _CHARGES.where(_e.account_id == account_id, _e.seq > after, _e.seq <= last)
    with database.read() as connection:
        return [ChargeRow.of(row) for row in connection.execute(statement.limit(limit))]
