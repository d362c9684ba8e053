"""The journal: a chained fact for everything that gives a charge its meaning.

What the tables hold already is adopted: one fact for each, with a digest of its rows, and one fact
for each user, key and dataset, with which later changes are compared. Settlements and audit lines
stay, read only.

Danger: a process of an earlier version must not charge any longer, because it writes no facts. So
the column ``subject`` of entries has another name. Its charges, releases, limits and freezes then
fail and write nothing; its answers and changes of users fail at tables that are read only. Later
migrations raise ``epoch`` instead, which every change of an account compares.
"""

from __future__ import annotations

import os

import sqlalchemy as sa
from alembic import op

from storage.database.types import Big, Bytes, Small, String
from storage.migrations.adoption import adopt
from storage.migrations.refusing import refuse_downgrade
from storage.migrations.triggers import forbid

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    add_columns()
    create_tables()
    for table in ("settlement", "audit"):
        forbid(table, "INSERT", "is read only: the journal holds what follows")
    op.create_index("ix_audit_at_us", "audit", ["at_us"])
    for change in ("UPDATE", "DELETE"):
        forbid("journal", change, "is append-only")
    advances = "NEW.id <> OLD.id OR NEW.seq <= OLD.seq OR NEW.opened_us <> OLD.opened_us"
    forbid("journal_stream", "UPDATE", "only advances", when=advances)
    forbid("journal_stream", "DELETE", "is kept for ever")
    salt_running_queries()
    adopt(op.get_bind())


def downgrade() -> None:
    refuse_downgrade("what gives a charge its meaning would be forgotten")


def add_columns() -> None:
    # Plain ALTER TABLE: copying a table into a new one would lose the triggers that guard it.
    bytes_type = "BLOB" if op.get_bind().dialect.name == "sqlite" else "BYTEA"
    big, small = ("INTEGER", "INTEGER") if bytes_type == "BLOB" else ("BIGINT", "SMALLINT")
    for table in ("users", "api_key", "dataset"):
        op.execute(f"ALTER TABLE {table} ADD COLUMN revision {big} NOT NULL DEFAULT 0")
    for table, column in (("dataset_version", "manifest_digest"), ("query", "salt")):
        op.execute(
            f"ALTER TABLE {table} ADD COLUMN {column} {bytes_type} "
            f"CONSTRAINT ck_{table}_{column} CHECK ({column} IS NULL OR length({column}) = 32)"
        )
    op.execute(f"ALTER TABLE query ADD COLUMN form {small} NOT NULL DEFAULT 1")
    op.execute(f"ALTER TABLE budget_account ADD COLUMN epoch {small} NOT NULL DEFAULT 8")
    op.execute("ALTER TABLE entry RENAME COLUMN subject TO bound")


def create_tables() -> None:
    op.create_table(
        "journal",
        sa.Column("stream", Big, nullable=False),
        sa.Column("seq", Big, nullable=False),
        sa.Column("at_us", Big, nullable=False),
        sa.Column("kind", Small, nullable=False),
        sa.Column("actor", Big, nullable=False),
        sa.Column("subject", Bytes, nullable=False),
        sa.Column("fact", String, nullable=False),
        sa.Column("digest", Bytes, nullable=False),
        sa.Column("head", Bytes, nullable=False),
        sa.CheckConstraint("length(digest) = 32 AND length(head) = 32", name="ck_journal_hashes"),
        sa.CheckConstraint("seq > 0 AND kind > 0", name="ck_journal_positive"),
        sa.PrimaryKeyConstraint("stream", "seq", name="pk_journal"),
        sqlite_strict=True,
    )
    _index("journal_ending", ["subject"], "kind = 5", unique=True)
    _index("journal_changes", ["at_us", "stream", "seq"], "kind >= 32")
    op.create_table(
        "journal_stream",
        sa.Column("id", Big, nullable=False),
        sa.Column("seq", Big, nullable=False),
        sa.Column("head", Bytes, nullable=False),
        sa.Column("opened_us", Big, nullable=False),
        sa.CheckConstraint("length(head) = 32", name="ck_journal_stream_head"),
        sa.PrimaryKeyConstraint("id", name="pk_journal_stream"),
        sqlite_strict=True,
    )


def _index(name: str, columns: list[str], condition: str, unique: bool = False) -> None:
    where = sa.text(condition)
    op.create_index(
        name, "journal", columns, unique=unique, sqlite_where=where, postgresql_where=where
    )


def salt_running_queries() -> None:
    """Gives a salt to the queries that may still end; rows of ended queries never change."""
    connection = op.get_bind()
    query = sa.table("query", sa.column("id"), sa.column("state"), sa.column("salt", Bytes))
    running = sa.select(query.c.id).where(query.c.state == 0)
    for id in connection.execute(running).scalars().all():
        salted = sa.update(query).where(query.c.id == id).values(salt=os.urandom(32))
        connection.execute(salted)
