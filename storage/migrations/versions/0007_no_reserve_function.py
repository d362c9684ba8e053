"""PostgreSQL: the function of 0002 goes; the service charges by the statements it has on SQLite.

Danger: a process of an older version calls the function. Its reserves fail then, and charge
nothing; stop it before this migration runs.
"""

from __future__ import annotations

from alembic import op

from storage.migrations.refusing import refuse_downgrade

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION reserve_queries")


def downgrade() -> None:
    refuse_downgrade("an older version would charge by a function that states its own guard")
