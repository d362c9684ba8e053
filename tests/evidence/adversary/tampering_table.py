"""What a verification must find: every column of every table, each with its expectation.

A column that stands in no row here fails the suite. ``FOUND``: a change of any value is found.
Otherwise the text says why the column is working state, which changes no meaning of a charge.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

FOUND = ""

_SESSION = "a session at the dashboard; it grants what its key grants and ends with it"
_UPLOAD = "how far an upload is; what it publishes is a version, which is bound"
_REFUSAL = "counts of refusals, which cost nothing and stand outside the ledger"

#: The id of the query that was running while ``test_upgrades`` upgraded its old ledger.
OLD_RUNNING = UUID(int=2)
UNKNOWN = ("idem_key", "body_hash", "request", "form", "salt")

TABLE: dict[str, dict[str, str]] = {
    "users": dict.fromkeys(("id", "name", "disabled", "created_us", "revision"), FOUND),
    "user_role": dict.fromkeys(("user_id", "role"), FOUND),
    "api_key": {
        **dict.fromkeys(("id", "user_id", "secret_hash", "created_us", "revoked_us"), FOUND),
        **dict.fromkeys(("revision", "limited", "datasets", "until_us"), FOUND),
        "last_used_us": "when a key was last used: shown, and read by nothing that decides",
    },
    "identity": {
        **dict.fromkeys(("user_id", "issuer", "subject"), FOUND),
        "issued_s": "the time of the latest token; the roles that it brought are bound",
    },
    "web_session": dict.fromkeys(("token_hash", "key_id", "expires_us"), _SESSION),
    "dataset": {
        **dict.fromkeys(
            (
                *("id", "name", "owner_id", "description", "domain", "neighbouring"),
                *("records_per_person", "fixed_rows", "version", "versions", "created_us"),
                *("nodes_folder", "revision"),
            ),
            FOUND,
        ),
        "person_key": "a random secret: with another one the next upload keeps other rows",
        "source": "what the next pull reads: a source of the owner, whose records have to fit",
    },
    "dataset_version": dict.fromkeys(
        ("dataset_id", "version", "published_us", "removed_us", "folder", "manifest_digest"), FOUND
    ),
    "upload": dict.fromkeys(
        ("id", "dataset_id", "state", "started_us", "lease_until", "detail"), _UPLOAD
    ),
    "budget_account": dict.fromkeys(
        (
            *("id", "rank", "dataset_id", "analyst_id", "lim_eps_n", "charged_eps_n"),
            *("lim_delta_a", "charged_delta_a", "frozen", "seq", "head", "epoch"),
            *("lim_rho_f", "charged_rho_f", "lim_delta_c", "charged_unpriced", "key_id"),
            *("lim_gaussian", "until_us"),
        ),
        FOUND,
    ),
    "budget_request": dict.fromkeys(
        (
            *("id", "dataset_id", "analyst_id", "eps_n", "delta_a", "until_us", "created_us"),
            *("state", "decided_us", "granted_eps_n", "granted_delta_a", "granted_until_us"),
            *("purpose", "reason", "salt", "purpose_digest", "reason_digest", "revision"),
        ),
        FOUND,
    ),
    "query": dict.fromkeys(
        (
            *("id", "analyst_id", "dataset_id", "dataset_version", "idem_key", "body_hash"),
            *("request", "eps_n", "delta_a", "state", "attempt", "attempt_us", "lease_until"),
            *("answer", "answer_hash", "answer_status", "created_us", "settled_us", "release_us"),
            *("form", "salt", "rho_f", "unpriced", "limited_key"),
        ),
        FOUND,
    ),
    "entry": dict.fromkeys(
        (
            *("account_id", "seq", "kind", "query_id", "actor", "d_eps_n", "d_delta_a", "at_us"),
            *("digest", "head", "bound", "d_rho_f", "d_unpriced", "d_gaussian"),
        ),
        FOUND,
    ),
    "settlement": dict.fromkeys(("query_id", "attempt", "answer_hash", "at_us", "digest"), FOUND),
    "refusal": dict.fromkeys(("analyst_id", "dataset", "type", "hour_us", "refusals"), _REFUSAL),
    "audit": dict.fromkeys(("id", "at_us", "actor_id", "action", "subject", "detail"), FOUND),
    "journal": dict.fromkeys(
        ("stream", "seq", "at_us", "kind", "actor", "subject", "fact", "digest", "head"), FOUND
    ),
    "journal_stream": dict.fromkeys(("id", "seq", "head", "opened_us"), FOUND),
}


def why_not(table: str, column: str, row: Any) -> str:
    """Why a change of this field of ``row`` is working state; FOUND if it must be found."""
    if table == "query" and row.state == 0 and row.id == OLD_RUNNING and column in UNKNOWN:
        return "no entry of the first schema binds a request, and this one has not ended yet"
    if table == "query" and column == "lease_until" and row.state == 0:
        return "each heartbeat extends the lease of a running query; its end binds the last one"
    return TABLE[table][column]


def is_bound(table: str) -> bool:
    """True unless every column of the table is working state."""
    return FOUND in TABLE[table].values()
