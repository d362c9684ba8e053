"""The first schema: people and keys, datasets and versions, accounts, queries, entries, audit.

Triggers are the last wall behind the statements: entries, settlements and audit lines are never
changed, and a query that has ended stays as it ended.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from storage.database.types import Big, Bytes, Int, Small, String, UuidBytes
from storage.migrations.refusing import refuse_downgrade
from storage.migrations.triggers import forbid

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_tables()
    for table in ("entry", "settlement", "audit"):
        forbid(table, "UPDATE", "is append-only")
        forbid(table, "DELETE", "is append-only")
    # Queries are never deleted. A retry under a deleted idempotency key would draw fresh noise, and
    # so release a second answer for one charge.
    forbid("query", "DELETE", "is kept for ever")
    forbid("query", "UPDATE", "has ended", when="OLD.state <> 0")
    forbid("budget_account", "DELETE", "is kept for ever")
    forbid("dataset", "DELETE", "is kept for ever: names are never reused")


def downgrade() -> None:
    refuse_downgrade("what was spent would be forgotten")


def create_tables() -> None:
    op.create_table(
        "audit",
        sa.Column("id", Big, nullable=False),
        sa.Column("at_us", Big, nullable=False),
        sa.Column("actor_id", Big, nullable=False),
        sa.Column("action", String, nullable=False),
        sa.Column("subject", String, nullable=False),
        sa.Column("detail", String, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_strict=True,
    )
    op.create_table(
        "budget_account",
        sa.Column("id", Big, nullable=False),
        sa.Column("rank", Small, nullable=False),
        sa.Column("dataset_id", Big, nullable=False),
        sa.Column("analyst_id", Big, nullable=False),
        sa.Column("lim_eps_n", Big, nullable=False),
        sa.Column("charged_eps_n", Big, server_default=sa.text("0"), nullable=False),
        sa.Column("lim_delta_a", Big, nullable=False),
        sa.Column("charged_delta_a", Big, server_default=sa.text("0"), nullable=False),
        sa.Column("frozen", Small, server_default=sa.text("0"), nullable=False),
        sa.Column("seq", Big, server_default=sa.text("0"), nullable=False),
        sa.Column("head", Bytes, nullable=False),
        sa.CheckConstraint(
            "(rank = 0 AND dataset_id > 0 AND analyst_id > 0)"
            " OR (rank = 1 AND dataset_id = 0 AND analyst_id > 0)"
            " OR (rank = 2 AND dataset_id > 0 AND analyst_id = 0)",
            name="ck_budget_account_range",
        ),
        sa.CheckConstraint(
            "charged_delta_a BETWEEN 0 AND lim_delta_a", name="ck_budget_account_delta"
        ),
        sa.CheckConstraint(
            "charged_eps_n BETWEEN 0 AND lim_eps_n", name="ck_budget_account_epsilon"
        ),
        sa.CheckConstraint("frozen IN (0, 1)", name="ck_budget_account_frozen"),
        sa.CheckConstraint("length(head) = 32", name="ck_budget_account_head"),
        sa.PrimaryKeyConstraint("id", name="pk_budget_account"),
        sa.UniqueConstraint(
            "rank", "dataset_id", "analyst_id", name="uq_budget_account_rank_dataset_id_analyst_id"
        ),
        postgresql_with={"fillfactor": 50},
        sqlite_strict=True,
    )
    op.create_index("ix_budget_account_analyst_id", "budget_account", ["analyst_id"])
    op.create_index("ix_budget_account_dataset_id", "budget_account", ["dataset_id"])
    op.create_table(
        "entry",
        sa.Column("account_id", Big, nullable=False),
        sa.Column("seq", Big, nullable=False),
        sa.Column("kind", Small, nullable=False),
        sa.Column("query_id", UuidBytes(), nullable=True),
        sa.Column("actor", Big, nullable=False),
        sa.Column("d_eps_n", Big, nullable=False),
        sa.Column("d_delta_a", Big, nullable=False),
        sa.Column("at_us", Big, nullable=False),
        sa.Column("digest", Bytes, nullable=False),
        sa.Column("head", Bytes, nullable=False),
        sa.CheckConstraint("kind BETWEEN 1 AND 6", name="ck_entry_kind"),
        sa.CheckConstraint("length(digest) = 32 AND length(head) = 32", name="ck_entry_hashes"),
        sa.PrimaryKeyConstraint("account_id", "seq", name="pk_entry"),
        sa.UniqueConstraint(
            "query_id", "account_id", "kind", name="uq_entry_query_id_account_id_kind"
        ),
        sqlite_strict=True,
    )
    op.create_index("ix_entry_at_us", "entry", ["at_us"])
    op.create_table(
        "query",
        sa.Column("id", UuidBytes(), nullable=False),
        sa.Column("analyst_id", Big, nullable=False),
        sa.Column("dataset_id", Big, nullable=False),
        sa.Column("dataset_version", Int, nullable=False),
        sa.Column("idem_key", String, nullable=False),
        sa.Column("body_hash", Bytes, nullable=False),
        sa.Column("request", Bytes, nullable=False),
        sa.Column("eps_n", Big, nullable=False),
        sa.Column("delta_a", Big, nullable=False),
        sa.Column("state", Small, nullable=False),
        sa.Column("attempt", Int, server_default="1", nullable=False),
        sa.Column("attempt_us", Big, nullable=False),
        sa.Column("lease_until", Big, nullable=False),
        sa.Column("answer", Bytes, nullable=True),
        sa.Column("answer_hash", Bytes, nullable=True),
        sa.Column("answer_status", Small, nullable=True),
        sa.Column("created_us", Big, nullable=False),
        sa.Column("settled_us", Big, nullable=True),
        sa.Column("release_us", Big, nullable=True),
        sa.CheckConstraint("(state = 1) = (answer IS NOT NULL)", name="ck_query_answer"),
        sa.CheckConstraint(
            "answer_hash IS NULL OR length(answer_hash) = 32", name="ck_query_answer_hash"
        ),
        sa.CheckConstraint("length(body_hash) = 32", name="ck_query_body_hash"),
        sa.CheckConstraint("state BETWEEN 0 AND 3", name="ck_query_state"),
        sa.PrimaryKeyConstraint("id", name="pk_query"),
        sa.UniqueConstraint("analyst_id", "idem_key", name="uq_query_analyst_id_idem_key"),
        sqlite_strict=True,
    )
    op.create_index("ix_query_analyst_id", "query", ["analyst_id", "created_us"])
    op.create_index("ix_query_dataset_id", "query", ["dataset_id", "created_us"])
    op.create_index(
        "query_open",
        "query",
        ["lease_until"],
        sqlite_where=sa.text("state = 0"),
        postgresql_where=sa.text("state = 0"),
    )
    op.create_table(
        "settlement",
        sa.Column("query_id", UuidBytes(), nullable=False),
        sa.Column("attempt", Int, nullable=False),
        sa.Column("answer_hash", Bytes, nullable=False),
        sa.Column("at_us", Big, nullable=False),
        sa.CheckConstraint("length(answer_hash) = 32", name="ck_settlement_hash"),
        sa.PrimaryKeyConstraint("query_id", name="pk_settlement"),
        sqlite_strict=True,
    )
    op.create_table(
        "users",
        sa.Column("id", Big, nullable=False),
        sa.Column("name", String, nullable=False),
        sa.Column("disabled", Small, server_default=sa.text("0"), nullable=False),
        sa.Column("created_us", Big, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
        sqlite_strict=True,
    )
    op.create_table(
        "api_key",
        sa.Column("id", String, nullable=False),
        sa.Column("user_id", Big, nullable=False),
        sa.Column("secret_hash", Bytes, nullable=False),
        sa.Column("created_us", Big, nullable=False),
        sa.Column("last_used_us", Big, nullable=True),
        sa.Column("revoked_us", Big, nullable=True),
        sa.CheckConstraint("length(secret_hash) = 32", name="ck_api_key_hash"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_api_key_user_id"),
        sa.PrimaryKeyConstraint("id", name="pk_api_key"),
        sqlite_strict=True,
    )
    op.create_index("ix_api_key_user_id", "api_key", ["user_id"])
    op.create_table(
        "dataset",
        sa.Column("id", Big, nullable=False),
        sa.Column("name", String, nullable=False),
        sa.Column("owner_id", Big, nullable=False),
        sa.Column("description", String, nullable=False),
        sa.Column("domain", String, nullable=True),
        sa.Column("neighbouring", String, nullable=False),
        sa.Column("records_per_person", Int, nullable=False),
        sa.Column("fixed_rows", Big, nullable=True),
        sa.Column("version", Int, server_default=sa.text("0"), nullable=False),
        sa.Column("versions", Int, server_default=sa.text("0"), nullable=False),
        sa.Column("created_us", Big, nullable=False),
        sa.CheckConstraint("records_per_person >= 1", name="ck_dataset_records_per_person"),
        sa.CheckConstraint("version = 0 OR version = versions", name="ck_dataset_version"),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name="fk_dataset_owner_id"),
        sa.PrimaryKeyConstraint("id", name="pk_dataset"),
        sa.UniqueConstraint("name", name="uq_dataset_name"),
        sqlite_strict=True,
    )
    op.create_index("ix_dataset_owner_id", "dataset", ["owner_id"])
    op.create_table(
        "user_role",
        sa.Column("user_id", Big, nullable=False),
        sa.Column("role", String, nullable=False),
        sa.CheckConstraint(
            "role IN ('admin', 'owner', 'analyst', 'auditor')", name="ck_user_role_role"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_user_role_user_id"),
        sa.PrimaryKeyConstraint("user_id", "role", name="pk_user_role"),
        sqlite_strict=True,
    )
    op.create_table(
        "dataset_version",
        sa.Column("dataset_id", Big, nullable=False),
        sa.Column("version", Int, nullable=False),
        sa.Column("published_us", Big, nullable=False),
        sa.Column("removed_us", Big, nullable=True),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["dataset.id"], name="fk_dataset_version_dataset_id"
        ),
        sa.PrimaryKeyConstraint("dataset_id", "version", name="pk_dataset_version"),
        sqlite_strict=True,
    )
    op.create_table(
        "upload",
        sa.Column("id", Big, nullable=False),
        sa.Column("dataset_id", Big, nullable=False),
        sa.Column("state", Small, nullable=False),
        sa.Column("started_us", Big, nullable=False),
        sa.Column("lease_until", Big, nullable=False),
        sa.Column("detail", String, nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["dataset.id"], name="fk_upload_dataset_id"),
        sa.PrimaryKeyConstraint("id", name="pk_upload"),
        sqlite_strict=True,
    )
    op.create_index("ix_upload_dataset_id", "upload", ["dataset_id", "id"])
    op.create_index(
        "upload_preparing",
        "upload",
        ["dataset_id"],
        unique=True,
        sqlite_where=sa.text("state = 0"),
        postgresql_where=sa.text("state = 0"),
    )
