"""PostgreSQL with two roles: one owns the schema, the other serves and can forget nothing.

Triggers refuse what no statement of the service does; these grants make the role it runs as unable
to do it even where somebody has got hold of its connection: it owns no table, so it can neither
change what is append-only nor take a trigger away.
"""

import re

from sqlalchemy import Connection, text

from storage.errors import UnusableDatabase

#: What the service may do with each table; nothing else, and nothing with tables not named.
GRANTS = {
    "entry": "SELECT, INSERT",
    "settlement": "SELECT, INSERT",
    "audit": "SELECT, INSERT",
    "budget_account": "SELECT, INSERT, UPDATE",
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
    """Let ``role`` serve, and no more than that. Raises: UnusableDatabase."""
    if connection.dialect.name != "postgresql":
        raise UnusableDatabase("roles are for PostgreSQL: SQLite has one file and its owner")
    if not ROLE.fullmatch(role):
        raise UnusableDatabase("a role's name is made of a-z, 0-9 and _")
    for statement in statements(role):
        connection.execute(text(statement))


def statements(role: str) -> list[str]:
    """What an owner of the schema runs for the role that serves."""
    return [
        f"GRANT USAGE ON SCHEMA public TO {role}",
        f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {role}",
        *(f"GRANT {rights} ON {table} TO {role}" for table, rights in GRANTS.items()),
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role}",
        f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO {role}",
    ]
