"""The audit trail: who changed people, keys, grants, uploads and limits, and when.

Its lines are facts of the journal, read without digests and without their places in a stream. The
lines of the table ``audit`` are those before schema 0008.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import BigInteger, Row, Select, literal, null, select, union_all

from storage.database.database import Database
from storage.database.pages import Page
from storage.database.tables import audit, journal, users
from storage.errors import InvalidCursor
from storage.journal.facts import FIRST_CHANGE, FIRST_UNTOLD

#: The name shown for the operator, who acts at the command line without a key.
OPERATOR_NAME = "(operator)"
#: Actions of lines from before the journal that no page shows, because their moment reveals how
#: long records took to prepare.
UNTOLD = ("records.publish",)
#: The most lines with the same timestamp that a page may skip to reach its cursor. This bounds the
#: cost of a cursor that a client made up.
MOST_SKIPPED = 10_000


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One line of the audit trail; ``detail`` holds public facts."""

    at_us: int
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]


_a, _j = audit.c, journal.c
_FACTS = select(
    *(_j.at_us, _j.stream, _j.seq, _j.actor),
    null().label("action"),
    null().label("subject"),
    _j.fact.label("text"),
).where(_j.kind >= FIRST_CHANGE, _j.kind < FIRST_UNTOLD)
_OLD = select(
    *(_a.at_us, literal(0, BigInteger), _a.id, _a.actor_id, _a.action, _a.subject, _a.detail)
).where(_a.action.not_in(UNTOLD))


def _lines(at_us: int | None, rows: int) -> Select[Any]:
    """The newest ``rows`` lines not after the moment ``at_us``, None for all, with their actors."""
    facts, old = _FACTS, _OLD
    if at_us is not None:
        facts, old = facts.where(_j.at_us <= at_us), old.where(_a.at_us <= at_us)
    # The tables ``journal`` and ``audit`` are each sorted and limited before their union. So their
    # indexes are used, and no line that cannot be on the page is read.
    newest = (
        facts.order_by(_j.at_us.desc(), _j.stream.desc(), _j.seq.desc()).limit(rows).subquery(),
        old.order_by(_a.at_us.desc(), _a.id.desc()).limit(rows).subquery(),
    )
    line = union_all(*map(select, newest)).subquery("line")
    named = line.outerjoin(users, users.c.id == line.c.actor)
    order = (line.c.at_us.desc(), line.c.stream.desc(), line.c.seq.desc())
    return select(*line.c, users.c.name).select_from(named).order_by(*order).limit(rows)


def page_of_lines(database: Database, limit: int, cursor: str | None = None) -> Page[AuditRow]:
    """Lines of the trail, newest first. Raises: InvalidCursor.

    A cursor holds the moment of the last line, and how many lines of that moment were shown. Its
    place in a stream would tell how many queries were answered since.
    """
    at_us, skip = (None, 0) if cursor is None else _decoded(cursor)
    with database.read() as connection:
        rows = connection.execute(_lines(at_us, skip + limit + 1)).all()[skip:]
    listed, following = rows[:limit], None
    if len(rows) > limit:
        last = listed[-1].at_us
        count = sum(row.at_us == last for row in listed) + (skip if last == at_us else 0)
        following = _encoded(last, count)
    return Page([_line(row) for row in listed], following)


def _line(row: Row[Any]) -> AuditRow:
    actor, content = row.name or OPERATOR_NAME, json.loads(row.text)
    if row.action is not None:
        return AuditRow(row.at_us, actor, row.action, row.subject, content)
    return AuditRow(row.at_us, actor, content["action"], content["name"], content["detail"])


def _encoded(at_us: int, skip: int) -> str:
    text = json.dumps([at_us, skip], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str) -> tuple[int, int]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        at_us, skip = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if type(at_us) is not int or type(skip) is not int:
            raise ValueError
        if not (-(2**63) <= at_us < 2**63 and 0 <= skip <= MOST_SKIPPED):
            raise ValueError
    except (ValueError, TypeError, RecursionError):
        raise InvalidCursor("not a cursor of this list") from None
    return at_us, skip
