"""PostgreSQL with two roles: one owns the schema; the service runs as the other.

Triggers protect the append-only tables, but the owner of a table can drop its triggers. So the
service's role owns no table and has only the rights below. A stolen connection of the service can
then neither change append-only rows nor drop a trigger.
"""

import re

from sqlalchemy import Connection, text

from storage.errors import UnusableDatabase

#: The rights of the service's role on each table. It has no rights on any other table.
GRANTS = {
    "entry": "SELECT, INSERT",
    "journal": "SELECT, INSERT",
    "journal_stream": "SELECT, INSERT, UPDATE",
    "settlement": "SELECT",
    "audit": "SELECT",
    "budget_account": "SELECT, INSERT, UPDATE",
    "budget_request": "SELECT, INSERT, UPDATE",
    "query": "SELECT, INSERT, UPDATE",
    "users": "SELECT, INSERT, UPDATE",
    "user_role": "SELECT, INSERT, DELETE",
    "identity": "SELECT, INSERT, UPDATE",
    "api_key": "SELECT, INSERT, UPDATE",
    "web_session": "SELECT, INSERT, DELETE",
    "dataset": "SELECT, INSERT, UPDATE",
    "dataset_version": "SELECT, INSERT, UPDATE",
    "upload": "SELECT, INSERT, UPDATE",
    "refusal": "SELECT, INSERT, UPDATE",
    "alembic_version": "SELECT",
}
ROLE = re.compile(r"[a-z_][a-z0-9_]{0,62}")


def grant_service(connection: Connection, role: str) -> None:
    """Gives ``role`` exactly the rights that the service needs. Raises: UnusableDatabase."""
    if connection.dialect.name != "postgresql":
        raise UnusableDatabase("roles are for PostgreSQL: SQLite has one file and its owner")
    if not ROLE.fullmatch(role):
        raise UnusableDatabase("a role's name is made of a-z, 0-9 and _")
    for statement in statements(role):
        connection.execute(text(statement))


def statements(role: str) -> list[str]:
    """The statements that the owner of the schema runs to give ``role`` its rights."""
    return [
        f"GRANT USAGE ON SCHEMA public TO {role}",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}",
        *(f"GRANT {rights} ON {table} TO {role}" for table, rights in GRANTS.items()),
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role}",
    ]
