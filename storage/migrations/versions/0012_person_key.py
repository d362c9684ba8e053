"""The secret that chooses which rows of a person are kept, for datasets with a column of persons.

Accounts and charges are unchanged, so their epoch is too: a process of an earlier version reads no
description with a column of persons, and can neither prepare such records nor query them.
"""

from __future__ import annotations

from alembic import op

from storage.migrations.refusing import refuse_downgrade

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Plain ALTER TABLE: copying a table into a new one would lose the triggers that guard it.
    bytes_type = "BLOB" if op.get_bind().dialect.name == "sqlite" else "BYTEA"
    op.execute(
        f"ALTER TABLE dataset ADD COLUMN person_key {bytes_type} "
        "CONSTRAINT ck_dataset_person_key CHECK (person_key IS NULL OR length(person_key) = 32)"
    )


def downgrade() -> None:
    refuse_downgrade("the next version of a dataset would keep other rows of its persons")
