"""Triggers that refuse what no statement of the service ever does, on either database."""

from __future__ import annotations

from typing import Literal

from alembic import op

Change = Literal["INSERT", "UPDATE", "DELETE"]


def forbid(table: str, change: Change, reason: str, when: str = "") -> None:
    """Refuse ``change`` on ``table``, for rows that meet ``when`` (all, when it is empty)."""
    message = f"{table} {reason}"
    name = f"{table}_no_{change.lower()}"
    condition = f"WHEN ({when})" if when else ""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            f"CREATE TRIGGER {name} BEFORE {change} ON {table} FOR EACH ROW {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )
        return
    op.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{message}'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {name} BEFORE {change} ON {table} FOR EACH ROW {condition} "
        f"EXECUTE FUNCTION {name}()"
    )
    if change == "DELETE":
        op.execute(
            f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
            f"FOR EACH STATEMENT EXECUTE FUNCTION {name}()"
        )
