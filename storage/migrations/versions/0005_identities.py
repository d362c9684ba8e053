"""Users whom an OpenID provider vouches for, by issuer and subject."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.database.types import Big, String
from storage.migrations.refusing import refuse_downgrade

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "identity",
        sa.Column("user_id", Big, nullable=False),
        sa.Column("issuer", String, nullable=False),
        sa.Column("subject", String, nullable=False),
        sa.Column("issued_s", Big, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_identity_user_id_users"),
        sa.PrimaryKeyConstraint("user_id", name="pk_identity"),
        sa.UniqueConstraint("issuer", "subject", name="uq_identity_issuer_subject"),
        sqlite_strict=True,
    )


def downgrade() -> None:
    refuse_downgrade("earlier versions would let people in by keys that later ones refuse")
