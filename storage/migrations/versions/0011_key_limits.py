"""API keys may have limits: an account of their own, the datasets they may query, a last moment.

Accounts, their sums and their entries are the same as before.

Danger: a process of an earlier version would not charge the account of a key. The epoch of all
accounts is raised, so such a process changes none of them any longer.
"""

from __future__ import annotations

import re

import sqlalchemy as sa
from alembic import op

from storage.migrations.refusing import refuse_downgrade
from storage.migrations.triggers import forbid

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

EPOCH = 11
OLD_RANGE = (
    "(rank = 0 AND dataset_id > 0 AND analyst_id > 0)"
    " OR (rank = 1 AND dataset_id = 0 AND analyst_id > 0)"
    " OR (rank = 2 AND dataset_id > 0 AND analyst_id = 0)"
)
RANGE = (
    "(rank = -1 AND dataset_id = 0 AND analyst_id > 0 AND key_id <> '')"
    " OR (rank = 0 AND dataset_id > 0 AND analyst_id > 0 AND key_id = '')"
    " OR (rank = 1 AND dataset_id = 0 AND analyst_id > 0 AND key_id = '')"
    " OR (rank = 2 AND dataset_id > 0 AND analyst_id = 0 AND key_id = '')"
)
OLD_KEY = "rank, dataset_id, analyst_id"
KEY = f"{OLD_KEY}, key_id"


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    big, small = ("INTEGER", "INTEGER") if sqlite else ("BIGINT", "SMALLINT")
    # Plain ALTER TABLE: copying these tables would lose the triggers that guard them.
    op.execute(f"ALTER TABLE api_key ADD COLUMN until_us {big}")
    op.execute("ALTER TABLE api_key ADD COLUMN datasets TEXT")
    op.execute(f"ALTER TABLE api_key ADD COLUMN limited {small} NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE query ADD COLUMN limited_key TEXT")
    op.execute("ALTER TABLE budget_account ADD COLUMN key_id TEXT NOT NULL DEFAULT ''")
    if sqlite:
        copy_accounts()
    else:
        alter_accounts()
    op.execute(f"UPDATE budget_account SET epoch = {EPOCH}")
    frozen = sa.text("frozen = 1")
    op.create_index(
        *("budget_account_frozen", "budget_account", ["id"]),
        sqlite_where=frozen,
        postgresql_where=frozen,
    )


def downgrade() -> None:
    refuse_downgrade("what keys were charged would be forgotten")


def alter_accounts() -> None:
    for name in (unique_name(OLD_KEY), *names_of_range()):
        op.execute(f"ALTER TABLE budget_account DROP CONSTRAINT {name}")
    for name, constraint in (
        (unique_name(KEY), f"UNIQUE ({KEY})"),
        ("ck_budget_account_range", f"CHECK ({RANGE})"),
    ):
        op.execute(f"ALTER TABLE budget_account ADD CONSTRAINT {name} {constraint}")
    op.execute(f"ALTER TABLE budget_account ALTER COLUMN epoch SET DEFAULT {EPOCH}")


def names_of_range() -> list[str]:
    """The name of the CHECK of ranks, to which migration 0001 may have put a prefix twice."""
    names = sa.text(
        "SELECT conname FROM pg_constraint WHERE conrelid = 'budget_account'::regclass "
        "AND contype = 'c' AND conname LIKE '%ck_budget_account_range'"
    )
    return list(op.get_bind().execute(names).scalars())


def copy_accounts() -> None:
    """SQLite changes no constraint of a table, so its rows move to a new one of the same name.

    The new table has the text of the old one, with whatever columns it has by now.
    """
    read = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = 'budget_account'")
    text = str(op.get_bind().execute(read).scalar_one())
    for old, new in (
        (r'CREATE TABLE "?budget_account"?', "CREATE TABLE budget_account_0011"),
        (re.escape(OLD_RANGE), RANGE),
        (rf"UNIQUE \({OLD_KEY}\)", f"UNIQUE ({KEY})"),
        (rf"\b{unique_name(OLD_KEY)}\b", unique_name(KEY)),
        (r"\bepoch INTEGER DEFAULT '?\d+'?", f"epoch INTEGER DEFAULT {EPOCH}"),
    ):
        text, changed = re.subn(old, new.replace("\\", r"\\"), text)
        if changed != 1:
            raise RuntimeError(f"the table of accounts does not have one {old}")
    op.execute(text)
    op.execute("INSERT INTO budget_account_0011 SELECT * FROM budget_account")
    # Dropping a table runs no DELETE trigger. It also drops the table's trigger and indexes, which
    # the following statements create again.
    op.drop_table("budget_account")
    op.rename_table("budget_account_0011", "budget_account")
    op.create_index("ix_budget_account_analyst_id", "budget_account", ["analyst_id"])
    op.create_index("ix_budget_account_dataset_id", "budget_account", ["dataset_id"])
    forbid("budget_account", "DELETE", "is kept for ever")


def unique_name(columns: str) -> str:
    return f"uq_budget_account_{columns.replace(', ', '_')}"
