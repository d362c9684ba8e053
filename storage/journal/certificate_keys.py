"""The public keys under which the service has signed certificates, each a fact of the journal.

A process signs with the key of its own data folder, so replicas and restored machines may have
different ones. Their certificates stay verifiable, because no key that signed is ever forgotten.
"""

import json

from sqlalchemy import Connection, select

from storage.database.database import Database
from storage.database.tables import journal
from storage.journal.facts import FIRST_CHANGE, FactKind, changed
from storage.journal.streams import record

_j = journal.c
_STATED = (
    select(_j.fact)
    .where(_j.kind >= FIRST_CHANGE, _j.kind == int(FactKind.CERTIFICATE_KEY))
    .order_by(_j.at_us.desc(), _j.stream.desc(), _j.seq.desc())
)
PublicKey = dict[str, str]


def state_certificate_key(database: Database, key: PublicKey) -> None:
    """Records a public key, a JSON Web Key with its ``kid``, unless the journal has it already."""

    def work(connection: Connection) -> None:
        if key not in _keys(connection):
            kind, action = FactKind.CERTIFICATE_KEY, "service.certificate_key"
            record(connection, changed(kind, b"", 0, action, key["kid"], key, key, None))

    with database.read() as connection:
        if key in _keys(connection):
            return
    database.write(work)


def certificate_keys(database: Database) -> list[PublicKey]:
    """Every public key that was ever stated, the newest first."""
    with database.read() as connection:
        return _keys(connection)


def _keys(connection: Connection) -> list[PublicKey]:
    keys: list[PublicKey] = []
    for fact in connection.execute(_STATED).scalars():
        key = json.loads(fact)["state"]
        if key not in keys:
            keys.append(key)
    return keys
