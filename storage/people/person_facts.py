"""Facts of the journal about people: what their rows and keys say after a change.

Every function raises the revision of the row in the transaction of the change, so the row's lock
orders the facts of different streams.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select, update

from storage.database.adopted import COLUMNS
from storage.database.tables import api_key, identity, user_role, users
from storage.journal.facts import FactKind, changed, number_subject
from storage.journal.streams import record


def record_user(
    connection: Connection, actor_id: int, user_id: int, action: str, detail: Mapping[str, Any]
) -> None:
    """Records a change of a user: name, roles, whether disabled, and identity at a provider.

    ``detail`` is shown in the audit trail: public facts alone.
    """
    raised = update(users).where(users.c.id == user_id).values(revision=users.c.revision + 1)
    row = connection.execute(raised.returning(users)).one()
    fact = changed(
        FactKind.USER,
        number_subject(user_id),
        actor_id,
        action,
        row.name,
        detail,
        user_state(connection, row),
        row.revision,
    )
    record(connection, fact)


def user_state(connection: Connection, row: Any) -> dict[str, Any]:
    """The state of a user as the journal's fact of the last change holds it.

    ``row`` is the row of the user in the table ``users``.
    """
    roles = select(user_role.c.role).where(user_role.c.user_id == row.id)
    pairs = select(identity.c.issuer, identity.c.subject).where(identity.c.user_id == row.id)
    pair = connection.execute(pairs).one_or_none()
    return {
        **{name: getattr(row, name) for name in COLUMNS["users"]},
        "roles": sorted(connection.execute(roles).scalars()),
        "identity": None if pair is None else list(pair),
    }


def record_key(
    connection: Connection,
    actor_id: int,
    key_id: str,
    action: str,
    name: str,
    detail: Mapping[str, Any],
    *,
    in_trail: bool = True,
) -> None:
    """Records a new or a revoked key. ``in_trail``: whether the audit trail shows a line."""
    raised = update(api_key).where(api_key.c.id == key_id)
    row = connection.execute(
        raised.values(revision=api_key.c.revision + 1).returning(api_key)
    ).one()
    kind = FactKind.KEY if in_trail else FactKind.UNTOLD_KEY
    subject, state = key_id.encode(), key_state(row)
    fact = changed(kind, subject, actor_id, action, name, detail, state, row.revision)
    record(connection, fact)


def key_state(row: Any) -> dict[str, Any]:
    """The state of an API key as the journal's fact of the last change holds it.

    ``row`` is the row of the key in the table ``api_key``.
    """
    state = {name: getattr(row, name) for name in COLUMNS["api_key"]}
    # The state of an API key without restrictions has only the fields of schema 0008. So it equals
    # the state in facts from before keys had restrictions.
    if row.limited or row.until_us is not None or row.datasets is not None:
        state |= {name: getattr(row, name) for name in ("limited", "until_us", "datasets")}
    # This hash needs no salt: the secret has 256 random bits, so nobody can guess it and confirm
    # the guess by the hash.
    return {**state, "secret_hash": bytes(row.secret_hash).hex()}
