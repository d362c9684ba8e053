"""An index of the entries that are no charge, so that a page of one such kind reads no charges.

Accounts and charges are unchanged, so their epoch is too. A charge writes nothing to the index.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.migrations.refusing import refuse_downgrade

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    no_charge = sa.text("kind > 1")
    op.create_index(
        *("entry_no_charge", "entry", ["kind", "at_us", "account_id", "seq"]),
        sqlite_where=no_charge,
        postgresql_where=no_charge,
    )


def downgrade() -> None:
    refuse_downgrade("no migration has a way down, though this one only adds an index")
