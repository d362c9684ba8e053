"""Sessions at the dashboard: a session is opened with a key and ends with that key at the latest.

A user of an identity provider has no key. Their sessions hang on a key whose secret nobody knows,
so that disabling the user and revoking that key end them like all others.

The token is 256 random bits that only the browser has; the database stores its SHA-256. A session
is read together with its key and its user. A revoked key or a disabled user therefore ends it in
every process with the next request.
"""

import re
from hashlib import sha256
from secrets import token_hex

from sqlalchemy import Connection, LargeBinary, bindparam, delete, insert, select

from storage.database.database import Database
from storage.database.expressions import USERS_LOCK, lock_for_transaction, now_us
from storage.database.statements import Hot
from storage.database.tables import api_key, users, web_session
from storage.people.keys import insert_key
from storage.people.person_facts import record_key
from storage.people.users import IS_VALID, SIGNED_IN, SignedIn, User, Users

_TOKEN = re.compile(r"[0-9a-f]{64}")

_s, _k, _u = web_session.c, api_key.c, users.c
_FIND = Hot(
    select(*SIGNED_IN)
    .join_from(web_session, api_key, _k.id == _s.key_id)
    .join(users, _u.id == _k.user_id)
    .where(
        _s.token_hash == bindparam("token_hash", type_=LargeBinary),
        _s.expires_us > now_us(),
        IS_VALID,
    )
)


class Sessions:
    """The sessions of one database; safe to share between threads.

    Args:
        lifetime_us: the time from the opening of a session to its end; use does not extend it.
    """

    def __init__(self, database: Database, users: Users, lifetime_us: int) -> None:
        self._database, self._users, self._lifetime_us = database, users, lifetime_us

    def open(self, key: str) -> str | None:
        """The token of a new session; None for a key that is not valid."""
        signed_in = self._users.sign_in(key)
        if signed_in is None:
            return None
        token = self._database.write(lambda connection: self._insert(connection, signed_in.key_id))
        self._users.note_use(signed_in.key_id)
        return token

    def open_of_identity(self, user: User, until_us: int) -> str:
        """The token of a new session of an identity provider's user, which ends at ``until_us``.

        The caller has verified the token of the provider, and ``until_us`` is its end.
        """

        def work(connection: Connection) -> str:
            # Without the lock, two concurrent sign-ins of one user would both issue a key.
            lock_for_transaction(connection, USERS_LOCK)
            valid = select(_k.id).where(_k.user_id == user.id, _k.revoked_us.is_(None))
            key_id = connection.execute(valid.limit(1)).scalar_one_or_none()
            if key_id is None:
                key_id = insert_key(connection, user.id).key_id
                detail = {"key_id": key_id}
                record_key(connection, user.id, key_id, "key.issue", user.name, detail)
            return self._insert(connection, key_id, until_us)

        return self._database.write(work)

    def _insert(self, connection: Connection, key_id: str, until_us: int | None = None) -> str:
        token = token_hex(32)
        now = connection.execute(select(now_us())).scalar_one()
        end = now + self._lifetime_us
        connection.execute(delete(web_session).where(_s.expires_us <= now))
        connection.execute(
            insert(web_session).values(
                token_hash=_hash(token),
                key_id=key_id,
                expires_us=end if until_us is None else min(end, until_us),
            )
        )
        return token

    def find(self, token: str) -> SignedIn | None:
        """The user of a session; None if it has ended or never existed."""
        if not _TOKEN.fullmatch(token):
            return None
        rows = self._database.look_up(_FIND, token_hash=_hash(token))
        return SignedIn.of(rows[0]) if rows else None

    def close(self, token: str) -> None:
        """End the session. A second call changes nothing."""
        ended = delete(web_session).where(_s.token_hash == _hash(token))
        self._database.write(lambda connection: connection.execute(ended))


def _hash(token: str) -> bytes:
    return sha256(token.encode()).digest()
