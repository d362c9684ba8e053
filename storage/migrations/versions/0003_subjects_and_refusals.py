"""Bind what entries point at: a subject beside the digest, a digest of how a query ended.

Entries and settlements that are there already keep the encoding they were written in: they have
neither, and verification checks of them what their digests cover.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.database.types import Big, String
from storage.migrations.refusing import refuse_downgrade

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Plain ALTER TABLE: copying a table into a new one would lose the triggers that guard it.
    kind = "BLOB" if op.get_bind().dialect.name == "sqlite" else "BYTEA"
    for table, column in (("entry", "subject"), ("settlement", "digest")):
        op.execute(
            f"ALTER TABLE {table} ADD COLUMN {column} {kind} CONSTRAINT ck_{table}_{column} "
            f"CHECK ({column} IS NULL OR length({column}) = 32)"
        )
    op.create_table(
        "refusal",
        sa.Column("analyst_id", Big, nullable=False),
        sa.Column("dataset", String, nullable=False),
        sa.Column("type", String, nullable=False),
        sa.Column("hour_us", Big, nullable=False),
        sa.Column("refusals", Big, nullable=False),
        sa.CheckConstraint("refusals > 0", name="ck_refusal_refusals"),
        sa.PrimaryKeyConstraint("analyst_id", "dataset", "type", "hour_us", name="pk_refusal"),
        sqlite_strict=True,
    )


def downgrade() -> None:
    refuse_downgrade("later entries could no longer be checked")
