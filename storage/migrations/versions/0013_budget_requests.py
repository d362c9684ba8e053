"""Requests of analysts for budget, and allowances that end at a moment.

Accounts, their sums and their entries are the same as before.

Danger: a process of an earlier version would charge an allowance that has ended. The epoch of all
accounts is raised, so such a process changes none of them any longer.
"""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op

from storage.database.types import Big, Bytes, Small, String, UuidBytes
from storage.migrations.refusing import refuse_downgrade
from storage.migrations.triggers import forbid

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

EPOCH = 13


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    # Plain ALTER TABLE: copying a table into a new one would lose the triggers that guard it.
    op.execute(
        f"ALTER TABLE budget_account ADD COLUMN until_us {'INTEGER' if sqlite else 'BIGINT'}"
    )
    if sqlite:
        copy_accounts()
    else:
        op.execute(f"ALTER TABLE budget_account ALTER COLUMN epoch SET DEFAULT {EPOCH}")
    op.execute(f"UPDATE budget_account SET epoch = {EPOCH}")
    create_requests()
    forbid("budget_request", "DELETE", "is kept for ever")


def downgrade() -> None:
    refuse_downgrade("when allowances end would be forgotten")


def copy_accounts() -> None:
    """SQLite changes no default of a column, so the rows move to a new table of the same name."""
    read = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'budget_account'")
    text = str(op.get_bind().execute(read).scalar_one())
    for old, new in (
        (r'CREATE TABLE "?budget_account"?', "CREATE TABLE budget_account_0013"),
        (r"\bepoch INTEGER DEFAULT '?\d+'?", f"epoch INTEGER DEFAULT {EPOCH}"),
    ):
        text, changed = re.subn(old, new, text)
        if changed != 1:
            raise RuntimeError(f"the table of accounts does not have one {old}")
    op.execute(text)
    op.execute("INSERT INTO budget_account_0013 SELECT * FROM budget_account")
    # Dropping a table runs no DELETE trigger. It also drops the table's trigger and indexes, which
    # the following statements create again.
    op.drop_table("budget_account")
    op.rename_table("budget_account_0013", "budget_account")
    op.create_index("ix_budget_account_analyst_id", "budget_account", ["analyst_id"])
    op.create_index("ix_budget_account_dataset_id", "budget_account", ["dataset_id"])
    op.create_index(
        *("budget_account_frozen", "budget_account", ["id"]), sqlite_where=sa.text("frozen = 1")
    )
    forbid("budget_account", "DELETE", "is kept for ever")


def create_requests() -> None:
    op.create_table(
        "budget_request",
        sa.Column("id", UuidBytes(), nullable=False),
        sa.Column("dataset_id", Big, nullable=False),
        sa.Column("analyst_id", Big, nullable=False),
        sa.Column("eps_n", Big, nullable=False),
        sa.Column("delta_a", Big, nullable=False),
        sa.Column("until_us", Big),
        sa.Column("created_us", Big, nullable=False),
        sa.Column("state", Small, server_default=sa.text("0"), nullable=False),
        sa.Column("decided_us", Big),
        sa.Column("granted_eps_n", Big),
        sa.Column("granted_delta_a", Big),
        sa.Column("granted_until_us", Big),
        sa.Column("purpose", String),
        sa.Column("reason", String),
        sa.Column("salt", Bytes),
        sa.Column("purpose_digest", Bytes, nullable=False),
        sa.Column("reason_digest", Bytes),
        sa.Column("revision", Big, server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("state BETWEEN 0 AND 3", name=op.f("ck_budget_request_state")),
        sa.CheckConstraint(
            "length(purpose_digest) = 32"
            " AND (reason_digest IS NULL OR length(reason_digest) = 32)"
            " AND (salt IS NULL OR length(salt) = 32)",
            name=op.f("ck_budget_request_hashes"),
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name=op.f("fk_budget_request_dataset_id")
        ),
        sa.ForeignKeyConstraint(
            ["analyst_id"], ["users.id"], name=op.f("fk_budget_request_analyst_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_request")),
        sqlite_strict=True,
    )
    op.create_index("ix_budget_request_analyst_id", "budget_request", ["analyst_id", "created_us"])
    op.create_index("ix_budget_request_dataset_id", "budget_request", ["dataset_id", "created_us"])
    is_open = sa.text("state = 0")
    op.create_index(
        *("budget_request_open", "budget_request", ["dataset_id", "analyst_id"]),
        unique=True,
        sqlite_where=is_open,
        postgresql_where=is_open,
    )
