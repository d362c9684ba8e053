"""Where in a store the arrays of a version and the names of nodes are; null in a data folder."""

from __future__ import annotations

from alembic import op

from storage.migrations.refusing import refuse_downgrade

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Plain ALTER TABLE: copying a table into a new one would lose the triggers that guard it.
    op.execute("ALTER TABLE dataset ADD COLUMN nodes_folder TEXT")
    op.execute("ALTER TABLE dataset_version ADD COLUMN folder TEXT")


def downgrade() -> None:
    refuse_downgrade("records in a store could no longer be found, and would be swept away")
