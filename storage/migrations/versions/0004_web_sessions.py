"""Sessions of the dashboard: whose key opened them and when they end; only a hash of the token."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.database.types import Big, Bytes, String
from storage.migrations.refusing import refuse_downgrade

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "web_session",
        sa.Column("token_hash", Bytes, nullable=False),
        sa.Column("key_id", String, nullable=False),
        sa.Column("expires_us", Big, nullable=False),
        sa.CheckConstraint("length(token_hash) = 32", name="ck_web_session_hash"),
        sa.ForeignKeyConstraint(["key_id"], ["api_key.id"], name="fk_web_session_key_id_api_key"),
        sa.PrimaryKeyConstraint("token_hash", name="pk_web_session"),
        sqlite_strict=True,
    )
    op.create_index("ix_web_session_key_id", "web_session", ["key_id"])


def downgrade() -> None:
    refuse_downgrade("earlier versions know no sessions")
