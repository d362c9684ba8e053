"""The audit trail: who changed people, keys, grants, uploads and limits, and when.

Each line is written in the transaction of the change that it records: both commit, or neither.
"""

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select

from storage.database.database import Database
from storage.database.expressions import now_us
from storage.database.pages import Page, page_of, read_as
from storage.database.tables import audit, users

#: The name shown for the operator, who acts at the command line without a key.
OPERATOR_NAME = "(operator)"
#: The first start that published heads; and heads adopted from the database as it was.
HEADS_BEGAN, HEADS_ADOPTED = "ledger.heads_began", "ledger.adopt_heads"
#: Actions that no page shows: the moment of the first reveals how long records took to prepare,
#: and the second tells the service itself that a missing file of heads is a loss.
UNTOLD = ("records.publish", HEADS_BEGAN)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One line of the audit trail; ``detail`` holds public facts."""

    id: int
    at_us: int
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]


def record(
    connection: Connection, actor_id: int, action: str, subject: str, detail: dict[str, Any]
) -> None:
    """Add one line, such as ``record(connection, 1, "user.create", "ada", {"roles": […]})``.

    ``detail`` holds public facts: nothing taken from records, no secret.
    """
    text = json.dumps(detail, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    line = {"actor_id": actor_id, "action": action, "subject": subject, "detail": text}
    connection.execute(insert(audit).values(at_us=now_us(), **line))


_c = audit.c
_LINES: Select[Any] = (
    select(*_c, users.c.name)
    .select_from(audit.outerjoin(users, users.c.id == _c.actor_id))
    .where(_c.action.not_in(UNTOLD))
)


def page_of_lines(database: Database, limit: int, cursor: str | None = None) -> Page[AuditRow]:
    """Lines of the trail, newest first."""
    return page_of(database, _LINES, [_c.id], limit, cursor, _line)


def _line(row: Row[Any]) -> AuditRow:
    actor, detail = row.name or OPERATOR_NAME, json.loads(row.detail)
    return read_as(AuditRow, row, actor=actor, detail=detail)
