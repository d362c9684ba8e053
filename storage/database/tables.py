"""The tables that statements refer to. The migrations create them in the database.

Times are microseconds of the database's clock. Amounts are nano-ε, atto-δ and femto-ρ. The
migrations alone hold the triggers, by which entries, facts of the journal and ended queries never
change. ``revision`` counts the changes of a row, each of which is a fact of the journal.
"""

from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import SchemaItem

from storage.database.types import Big, Bytes, Int, Small, String, UuidBytes

#: The number of the schema that a process must know to change an account: a process changes only
#: accounts whose column ``epoch`` has its own number. A migration raises both when processes of
#: earlier versions must not charge any longer.
EPOCH = 13

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)


def _table(name: str, *items: SchemaItem, **options: Any) -> Table:
    return Table(name, metadata, *items, sqlite_strict=True, **options)


def _index_where(name: str, condition: str, *columns: Column[Any], unique: bool = False) -> None:
    where = text(condition)
    Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)


users = _table(
    "users",
    Column("id", Big, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("disabled", Small, nullable=False, server_default=text("0")),
    Column("created_us", Big, nullable=False),
    Column("revision", Big, nullable=False, server_default=text("0")),
)

user_role = _table(
    "user_role",
    Column("user_id", Big, ForeignKey("users.id"), nullable=False),
    Column("role", String, nullable=False),
    PrimaryKeyConstraint("user_id", "role"),
    CheckConstraint("role IN ('admin', 'owner', 'analyst', 'auditor')", name="role"),
)

api_key = _table(
    "api_key",
    Column("id", String, primary_key=True),
    Column("user_id", Big, ForeignKey("users.id"), nullable=False, index=True),
    Column("secret_hash", Bytes, nullable=False),
    Column("created_us", Big, nullable=False),
    Column("last_used_us", Big),
    Column("revoked_us", Big),
    # The moment from which on the API key is refused; null if it has no end.
    Column("until_us", Big),
    # JSON list of the ids of the only datasets that the API key may query; null for all datasets.
    Column("datasets", String),
    # 1 if the API key has an account of its own, which is charged beside the others; else 0.
    Column("limited", Small, nullable=False, server_default=text("0")),
    Column("revision", Big, nullable=False, server_default=text("0")),
    CheckConstraint("length(secret_hash) = 32", name="hash"),
)

# The users who sign in with tokens of an OpenID provider.
identity = _table(
    "identity",
    Column("user_id", Big, ForeignKey("users.id"), primary_key=True, autoincrement=False),
    Column("issuer", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("issued_s", Big, nullable=False),  # when the token that gave the user's roles was issued
    UniqueConstraint("issuer", "subject", name="uq_identity_issuer_subject"),
)

# The sessions at the dashboard. A session ends when it expires, at sign-out, and with its key.
web_session = _table(
    "web_session",
    Column("token_hash", Bytes, primary_key=True),
    Column("key_id", String, ForeignKey("api_key.id"), nullable=False, index=True),
    Column("expires_us", Big, nullable=False),
    CheckConstraint("length(token_hash) = 32", name="hash"),
)

dataset = _table(
    "dataset",
    Column("id", Big, primary_key=True),
    Column("name", String, nullable=False, unique=True),
    Column("owner_id", Big, ForeignKey("users.id"), nullable=False, index=True),
    # The description as registered and its parsed form, as JSON. They change only if the owner
    # replaces an unused description, and when a node list completes the domain of a graph.
    Column("description", String, nullable=False),
    Column("domain", String),
    Column("neighbouring", String, nullable=False),
    Column("records_per_person", Int, nullable=False),
    # The row count of a table whose neighbouring relation is ``replace``. It is public from the
    # first accepted upload on.
    Column("fixed_rows", Big),
    # The number of the version that queries read; 0 if there is none.
    Column("version", Int, nullable=False, server_default=text("0")),
    # The number of versions that were published so far.
    Column("versions", Int, nullable=False, server_default=text("0")),
    Column("created_us", Big, nullable=False),
    Column("nodes_folder", String),  # folder of the node names in an object store, or null
    Column("revision", Big, nullable=False, server_default=text("0")),
    # The secret that chooses which rows of a person are kept, until the records are withdrawn.
    # Danger: only ``storage.catalogue.person_keys`` may select it.
    Column("person_key", Bytes),
    # JSON list of the name of the attached source and the name of its table; null if no source is
    # attached.
    Column("source", String),
    CheckConstraint("version = 0 OR version = versions", name="version"),
    CheckConstraint("records_per_person >= 1", name="records_per_person"),
    CheckConstraint("person_key IS NULL OR length(person_key) = 32", name="person_key"),
)

dataset_version = _table(
    "dataset_version",
    Column("dataset_id", Big, ForeignKey("dataset.id"), nullable=False),
    Column("version", Int, nullable=False),
    Column("published_us", Big, nullable=False),
    Column("removed_us", Big),  # when the arrays of this version were deleted
    Column("folder", String),  # folder of its arrays in an object store; null without a store
    Column("manifest_digest", Bytes),  # SHA-256 of the version's manifest; null before schema 0008
    PrimaryKeyConstraint("dataset_id", "version"),
    CheckConstraint(
        "manifest_digest IS NULL OR length(manifest_digest) = 32", name="manifest_digest"
    ),
)

upload = _table(
    "upload",
    Column("id", Big, primary_key=True),
    Column("dataset_id", Big, ForeignKey("dataset.id"), nullable=False),
    Column("state", Small, nullable=False),  # of an upload: 0 preparing, 1 refused, 2 published
    Column("started_us", Big, nullable=False),
    Column("lease_until", Big, nullable=False),
    Column("detail", String, nullable=False),
    Index("ix_upload_dataset_id", "dataset_id", "id"),
)
_index_where("upload_preparing", "state = 0", upload.c.dataset_id, unique=True)

budget_account = _table(
    "budget_account",
    Column("id", Big, primary_key=True),
    # An ``AccountRank``, the kind of the account. Accounts are locked in the order of rank and id.
    Column("rank", Small, nullable=False),
    # 0 stands for all datasets or all analysts. NULL would not do, because UNIQUE treats two NULLs
    # as different.
    Column("dataset_id", Big, nullable=False),
    Column("analyst_id", Big, nullable=False),
    # The id of the API key that has this account; "" for all other accounts.
    Column("key_id", String, nullable=False, server_default=text("''")),
    Column("lim_eps_n", Big, nullable=False),
    Column("charged_eps_n", Big, nullable=False, server_default=text("0")),
    Column("lim_delta_a", Big, nullable=False),
    Column("charged_delta_a", Big, nullable=False, server_default=text("0")),
    Column("lim_rho_f", Big, nullable=False, server_default=text("0")),
    Column("charged_rho_f", Big, nullable=False, server_default=text("0")),
    Column("lim_delta_c", Big, nullable=False, server_default=text("0")),
    Column("charged_unpriced", Big, nullable=False, server_default=text("0")),
    Column("lim_gaussian", Big, nullable=False, server_default=text("0")),
    Column("frozen", Small, nullable=False, server_default=text("0")),
    Column("seq", Big, nullable=False, server_default=text("0")),
    Column("head", Bytes, nullable=False),
    # A process changes the account only if this number is its own ``EPOCH``.
    Column("epoch", Small, nullable=False, server_default=text("13")),
    Column("until_us", Big),  # the account takes no new charge from this moment on; null: never
    UniqueConstraint("rank", "dataset_id", "analyst_id", "key_id"),
    # Repeats the guard, the condition of the UPDATE that charges. So no other statement can store
    # sums that ``accounting.account.admits`` would refuse.
    CheckConstraint(
        "charged_eps_n >= 0 AND charged_rho_f >= 0 AND charged_unpriced >= 0"
        " AND charged_delta_a BETWEEN 0 AND lim_delta_a"
        " AND (charged_unpriced = 0 AND charged_eps_n <= lim_eps_n"
        " OR lim_rho_f > 0 AND charged_rho_f <= lim_rho_f"
        " AND charged_eps_n <= 4611686018427387904)",
        name="guard",
    ),
    CheckConstraint(
        "lim_rho_f = 0 OR lim_rho_f > 0 AND lim_delta_c BETWEEN 1 AND 1000000000000000"
        " AND lim_eps_n <= 1000000000000",
        name="rho",
    ),
    CheckConstraint("lim_gaussian = 0 OR lim_gaussian = 1 AND lim_rho_f > 0", name="gaussian"),
    CheckConstraint("frozen IN (0, 1)", name="frozen"),
    CheckConstraint("length(head) = 32", name="head"),
    CheckConstraint(
        "(rank = -1 AND dataset_id = 0 AND analyst_id > 0 AND key_id <> '')"
        " OR (rank = 0 AND dataset_id > 0 AND analyst_id > 0 AND key_id = '')"
        " OR (rank = 1 AND dataset_id = 0 AND analyst_id > 0 AND key_id = '')"
        " OR (rank = 2 AND dataset_id > 0 AND analyst_id = 0 AND key_id = '')",
        name="range",
    ),
    Index("ix_budget_account_analyst_id", "analyst_id"),
    Index("ix_budget_account_dataset_id", "dataset_id"),
    postgresql_with={"fillfactor": 50},  # leaves space to update rows in place
)

_index_where("budget_account_frozen", "frozen = 1", budget_account.c.id)

# Requests of analysts for budget on a dataset, each with the decision of its owner.
budget_request = _table(
    "budget_request",
    Column("id", UuidBytes, primary_key=True),
    Column("dataset_id", Big, ForeignKey("dataset.id"), nullable=False),
    Column("analyst_id", Big, ForeignKey("users.id"), nullable=False),
    Column("eps_n", Big, nullable=False),
    Column("delta_a", Big, nullable=False),
    Column("until_us", Big),
    Column("created_us", Big, nullable=False),
    # The number of a ``RequestState`` of ``storage.ledger.budget_requests``, such as open.
    Column("state", Small, nullable=False, server_default=text("0")),
    Column("decided_us", Big),
    Column("granted_eps_n", Big),
    Column("granted_delta_a", Big),
    Column("granted_until_us", Big),
    # Erasing a request sets the texts to null, and also the salt, so that nobody can confirm a
    # guess of a text by its digest.
    Column("purpose", String),
    Column("reason", String),
    Column("salt", Bytes),
    Column("purpose_digest", Bytes, nullable=False),
    Column("reason_digest", Bytes),
    Column("revision", Big, nullable=False, server_default=text("0")),
    CheckConstraint("state BETWEEN 0 AND 3", name="state"),
    CheckConstraint(
        "length(purpose_digest) = 32"
        " AND (reason_digest IS NULL OR length(reason_digest) = 32)"
        " AND (salt IS NULL OR length(salt) = 32)",
        name="hashes",
    ),
    Index("ix_budget_request_analyst_id", "analyst_id", "created_us"),
    Index("ix_budget_request_dataset_id", "dataset_id", "created_us"),
)
# Allows one open request per analyst and dataset.
_index_where(
    *("budget_request_open", "state = 0"),
    *(budget_request.c.dataset_id, budget_request.c.analyst_id),
    unique=True,
)

query = _table(
    "query",
    Column("id", UuidBytes, primary_key=True),
    Column("analyst_id", Big, nullable=False),
    Column("dataset_id", Big, nullable=False),
    Column("dataset_version", Int, nullable=False),
    Column("idem_key", String, nullable=False),
    Column("body_hash", Bytes, nullable=False),
    Column("request", Bytes, nullable=False),
    Column("eps_n", Big, nullable=False),
    Column("delta_a", Big, nullable=False),
    Column("state", Small, nullable=False),  # number of a ``storage.ledger.requests.QueryState``
    Column("attempt", Int, nullable=False, server_default="1"),
    Column("attempt_us", Big, nullable=False),  # when the current attempt began
    Column("lease_until", Big, nullable=False),
    Column("answer", Bytes),
    Column("answer_hash", Bytes),
    Column("answer_status", Small),
    Column("created_us", Big, nullable=False),
    Column("settled_us", Big),
    Column("release_us", Big),
    # The number of the canonical form in which ``request`` is stored.
    Column("form", Small, nullable=False, server_default=text("1")),
    # Random bytes that salt the digests of this query in the journal. They are null for queries
    # that had ended before schema 0008: their rows never change, and one digest covers all of them.
    Column("salt", Bytes),
    Column("rho_f", Big),  # the ρ of the charge; null before schema 0009, as ``unpriced`` is
    Column("unpriced", Big),
    Column("limited_key", String),  # the API key whose own account was charged as well, or null
    UniqueConstraint("analyst_id", "idem_key"),
    CheckConstraint("salt IS NULL OR length(salt) = 32", name="salt"),
    CheckConstraint("(state = 1) = (answer IS NOT NULL)", name="answer"),
    CheckConstraint("length(body_hash) = 32", name="body_hash"),
    CheckConstraint("answer_hash IS NULL OR length(answer_hash) = 32", name="answer_hash"),
    CheckConstraint("state BETWEEN 0 AND 3", name="state"),
    Index("ix_query_analyst_id", "analyst_id", "created_us"),
    Index("ix_query_dataset_id", "dataset_id", "created_us"),
)
_index_where("query_open", "state = 0", query.c.lease_until)

entry = _table(
    "entry",
    Column("account_id", Big, nullable=False),
    Column("seq", Big, nullable=False),
    Column("kind", Small, nullable=False),  # the number of a ``storage.journal.layouts.EntryKind``
    Column("query_id", UuidBytes),
    Column("actor", Big, nullable=False),
    Column("d_eps_n", Big, nullable=False),
    Column("d_delta_a", Big, nullable=False),
    Column("at_us", Big, nullable=False),
    Column("digest", Bytes, nullable=False),
    Column("head", Bytes, nullable=False),
    # The subject: a digest of what the entry binds besides its amounts, such as the request of a
    # charge. It is null in most kinds of entries, and before schema 0003.
    Column("bound", Bytes),
    # The change of ρ; null if the entry is not counted in ρ: before schema 0009, and in accounts
    # whose ε is too large for a limit in ρ. In an entry that changes a limit, ``d_unpriced`` holds
    # the change of δ_c.
    Column("d_rho_f", Big),
    Column("d_unpriced", Big),
    # The change of the permission of releases without a finite ε. It is null before schema 0010,
    # and in all entries that do not change a limit.
    Column("d_gaussian", Big),
    PrimaryKeyConstraint("account_id", "seq"),
    # Prevents a second charge or release of a query on one account. The column of the query comes
    # first, so that this index also finds all entries of a query.
    UniqueConstraint("query_id", "account_id", "kind"),
    CheckConstraint("length(digest) = 32 AND length(head) = 32", name="hashes"),
    CheckConstraint("bound IS NULL OR length(bound) = 32", name="subject"),
    CheckConstraint("kind BETWEEN 1 AND 6", name="kind"),
    Index("ix_entry_at_us", "at_us"),
)
# An index for pages of entries of one kind other than charges, newest first. It leaves out charges,
# which are most of the entries.
_index_where(
    *("entry_no_charge", "kind > 1"), entry.c.kind, entry.c.at_us, entry.c.account_id, entry.c.seq
)

# The ends of queries before schema 0008, read only. Later ones are facts of the journal.
settlement = _table(
    "settlement",
    Column("query_id", UuidBytes, primary_key=True),
    Column("attempt", Int, nullable=False),
    Column("answer_hash", Bytes, nullable=False),
    Column("at_us", Big, nullable=False),
    # The digest of the end, from storage.journal.layouts.ending_digest; null before schema 0003.
    Column("digest", Bytes),
    CheckConstraint("length(answer_hash) = 32", name="hash"),
    CheckConstraint("digest IS NULL OR length(digest) = 32", name="digest"),
)

# The counts of refusals. A refusal is free of charge and leaves no entry in the ledger.
refusal = _table(
    "refusal",
    Column("analyst_id", Big, nullable=False),
    # The dataset as named in the request; "" if it is not certain that the analyst may see it.
    Column("dataset", String, nullable=False),
    Column("type", String, nullable=False),  # the last part of the problem's type
    Column("hour_us", Big, nullable=False),  # when the hour of the refusals began
    Column("refusals", Big, nullable=False),
    PrimaryKeyConstraint("analyst_id", "dataset", "type", "hour_us"),
    CheckConstraint("refusals > 0", name="refusals"),
)

# The lines of the audit trail before schema 0008, read only. Later ones are facts of the journal.
audit = _table(
    "audit",
    Column("id", Big, primary_key=True),
    Column("at_us", Big, nullable=False),
    Column("actor_id", Big, nullable=False),
    Column("action", String, nullable=False),
    Column("subject", String, nullable=False),
    Column("detail", String, nullable=False),
    Index("ix_audit_at_us", "at_us"),
)

journal = _table(
    "journal",
    Column("stream", Big, nullable=False),
    Column("seq", Big, nullable=False),
    Column("at_us", Big, nullable=False),
    Column("kind", Small, nullable=False),  # the number of a ``storage.journal.facts.FactKind``
    Column("actor", Big, nullable=False),
    Column("subject", Bytes, nullable=False),
    Column("fact", String, nullable=False),  # what the fact states, as canonical JSON
    Column("digest", Bytes, nullable=False),
    Column("head", Bytes, nullable=False),
    PrimaryKeyConstraint("stream", "seq"),
    CheckConstraint("length(digest) = 32 AND length(head) = 32", name="hashes"),
    CheckConstraint("seq > 0 AND kind > 0", name="positive"),
)
# Prevents a second fact that ends the same query.
_index_where("journal_ending", "kind = 5", journal.c.subject, unique=True)
# An index of the facts of changes, such as lines of the audit trail. It leaves out the facts of
# queries, which are most of the journal.
_index_where("journal_changes", "kind >= 32", journal.c.at_us, journal.c.stream, journal.c.seq)

journal_stream = _table(
    "journal_stream",
    Column("id", Big, primary_key=True),
    Column("seq", Big, nullable=False),
    Column("head", Bytes, nullable=False),
    Column("opened_us", Big, nullable=False),
    CheckConstraint("length(head) = 32", name="head"),
)
