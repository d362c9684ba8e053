"""The public keys under which the service has signed certificates, each a fact of the journal.

A process signs with the key of its own data folder, so replicas and restored machines may have
different ones. Their certificates stay verifiable, because no key that signed is ever forgotten.
"""

import json
from threading import Lock

from sqlalchemy import Connection, select

from storage.database.database import Database
from storage.database.expressions import read_now
from storage.database.tables import journal
from storage.journal.facts import FIRST_CHANGE, FactKind, changed
from storage.journal.streams import record

#: Each read of keys also covers this many microseconds before the previous read. Otherwise it would
#: miss a fact with an earlier moment whose transaction committed only after that read.
OVERLAP_US = 600 * 1_000_000

_j = journal.c
_STATED = (
    select(_j.at_us, _j.fact)
    .where(_j.kind >= FIRST_CHANGE, _j.kind == int(FactKind.CERTIFICATE_KEY))
    .order_by(_j.at_us, _j.stream, _j.seq)
)
PublicKey = dict[str, str]


class CertificateKeys:
    """All keys that were ever stated; safe between threads.

    The first read takes as long as the journal has changes. Later ones read new facts alone.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        #: The public keys that were read, in the order of their facts.
        self._keys: list[PublicKey] = []
        self._read_us = 0

    def state(self, key: PublicKey) -> None:
        """Records a public key, a JSON Web Key with its ``kid``, unless the journal has it."""

        def work(connection: Connection) -> None:
            if key not in self._read(connection):
                kind, action = FactKind.CERTIFICATE_KEY, "service.certificate_key"
                record(connection, changed(kind, b"", 0, action, key["kid"], key, key, None))

        if key not in self.all():
            self._database.write(work)

    def all(self) -> list[PublicKey]:
        """Every public key that was ever stated, the newest first."""
        with self._database.read() as connection:
            return self._read(connection)

    def _read(self, connection: Connection) -> list[PublicKey]:
        with self._lock:
            now = read_now(connection)
            # The clock may have been set back since the previous read, so the earlier of both
            # moments counts.
            since = min(now, self._read_us) - OVERLAP_US
            for _, fact in connection.execute(_STATED.where(_j.at_us >= since)):
                key = json.loads(fact)["state"]
                if key not in self._keys:
                    self._keys.append(key)
            self._read_us = now
            return self._keys[::-1]
