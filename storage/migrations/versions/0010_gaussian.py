"""Accounts may allow releases without a finite ε, such as Gaussian noise, whose loss is ρ alone.

No account allows them until its owner says so. A limit states the permission in an entry with an
encoding of its own; entries of earlier schemas stay as they are.

Danger: a process of an earlier version would charge such a release without the permission. The
epoch of all accounts is raised, so such a process changes none of them any longer.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.database.types import Big, Bytes, Small
from storage.migrations.refusing import refuse_downgrade
from storage.migrations.triggers import forbid

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

GUARD = (
    "charged_eps_n >= 0 AND charged_rho_f >= 0 AND charged_unpriced >= 0"
    " AND charged_delta_a BETWEEN 0 AND lim_delta_a"
    " AND (charged_unpriced = 0 AND charged_eps_n <= lim_eps_n"
    " OR lim_rho_f > 0 AND charged_rho_f <= lim_rho_f"
    " AND charged_eps_n <= 4611686018427387904)"
)
RHO = (
    "lim_rho_f = 0 OR lim_rho_f > 0 AND lim_delta_c BETWEEN 1 AND 1000000000000000"
    " AND lim_eps_n <= 1000000000000"
)
GAUSSIAN = "lim_gaussian = 0 OR lim_gaussian = 1 AND lim_rho_f > 0"
COLUMNS = (
    "id, rank, dataset_id, analyst_id, lim_eps_n, charged_eps_n, lim_delta_a, charged_delta_a, "
    "lim_rho_f, charged_rho_f, lim_delta_c, charged_unpriced, frozen, seq, head"
)


def upgrade() -> None:
    sqlite = op.get_bind().dialect.name == "sqlite"
    # Plain ALTER TABLE: copying this table would lose the triggers that guard it.
    op.execute(f"ALTER TABLE entry ADD COLUMN d_gaussian {'INTEGER' if sqlite else 'BIGINT'}")
    if sqlite:
        copy_accounts()
    else:
        alter_accounts()


def downgrade() -> None:
    refuse_downgrade("what was charged without a finite epsilon would be forgotten")


def alter_accounts() -> None:
    op.execute("ALTER TABLE budget_account ADD COLUMN lim_gaussian BIGINT NOT NULL DEFAULT 0")
    constraint = f"CONSTRAINT ck_budget_account_gaussian CHECK ({GAUSSIAN})"
    op.execute(f"ALTER TABLE budget_account ADD {constraint}")
    op.execute("ALTER TABLE budget_account ALTER COLUMN epoch SET DEFAULT 10")
    op.execute("UPDATE budget_account SET epoch = 10")


def copy_accounts() -> None:
    """SQLite changes no constraint of a table, so its rows move to a new one of the same name."""
    zero = sa.text("0")
    counted = ("charged_eps_n", "charged_delta_a", "lim_rho_f", "charged_rho_f", "lim_delta_c")
    op.create_table(
        "budget_account_0010",
        sa.Column("id", Big, nullable=False),
        sa.Column("rank", Small, nullable=False),
        sa.Column("dataset_id", Big, nullable=False),
        sa.Column("analyst_id", Big, nullable=False),
        sa.Column("lim_eps_n", Big, nullable=False),
        sa.Column("lim_delta_a", Big, nullable=False),
        *(
            sa.Column(name, Big, server_default=zero, nullable=False)
            for name in (*counted, "charged_unpriced", "lim_gaussian")
        ),
        sa.Column("frozen", Small, server_default=zero, nullable=False),
        sa.Column("seq", Big, server_default=zero, nullable=False),
        sa.Column("head", Bytes, nullable=False),
        sa.Column("epoch", Small, server_default=sa.text("10"), nullable=False),
        sa.CheckConstraint(
            "(rank = 0 AND dataset_id > 0 AND analyst_id > 0)"
            " OR (rank = 1 AND dataset_id = 0 AND analyst_id > 0)"
            " OR (rank = 2 AND dataset_id > 0 AND analyst_id = 0)",
            name=op.f("ck_budget_account_range"),
        ),
        sa.CheckConstraint(GUARD, name=op.f("ck_budget_account_guard")),
        sa.CheckConstraint(RHO, name=op.f("ck_budget_account_rho")),
        sa.CheckConstraint(GAUSSIAN, name=op.f("ck_budget_account_gaussian")),
        sa.CheckConstraint("frozen IN (0, 1)", name=op.f("ck_budget_account_frozen")),
        sa.CheckConstraint("length(head) = 32", name=op.f("ck_budget_account_head")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_account")),
        sa.UniqueConstraint(
            "rank",
            "dataset_id",
            "analyst_id",
            name=op.f("uq_budget_account_rank_dataset_id_analyst_id"),
        ),
        sqlite_strict=True,
    )
    op.execute(f"INSERT INTO budget_account_0010 ({COLUMNS}) SELECT {COLUMNS} FROM budget_account")
    # Dropping a table runs no DELETE trigger. It also drops the table's trigger and indexes, which
    # the following statements create again.
    op.drop_table("budget_account")
    op.rename_table("budget_account_0010", "budget_account")
    op.create_index("ix_budget_account_analyst_id", "budget_account", ["analyst_id"])
    op.create_index("ix_budget_account_dataset_id", "budget_account", ["dataset_id"])
    forbid("budget_account", "DELETE", "is kept for ever")
