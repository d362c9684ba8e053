"""The source and the table from which the owner of a dataset pulls records.

Accounts and charges are unchanged, so their epoch is too. A process of an earlier version neither
reads nor writes the column, and pulls nothing.
"""

from __future__ import annotations

from alembic import op

from storage.migrations.refusing import refuse_downgrade

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Plain ALTER TABLE: copying a table into a new one would lose the triggers that guard it.
    op.execute("ALTER TABLE dataset ADD COLUMN source TEXT")


def downgrade() -> None:
    refuse_downgrade("datasets would lose the sources that their owners attached")
