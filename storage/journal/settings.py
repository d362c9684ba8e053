"""The settings of a service that decide who may come in and what an instant may reveal."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, select

from storage.database.database import Database
from storage.database.tables import journal
from storage.journal.facts import FIRST_CHANGE, FactKind, canonical, changed
from storage.journal.streams import record

_j = journal.c
_LATEST = (
    select(_j.fact)
    .where(_j.kind >= FIRST_CHANGE, _j.kind == int(FactKind.SETTINGS))
    .order_by(_j.at_us.desc(), _j.stream.desc(), _j.seq.desc())
    .limit(1)
)


def state_settings(database: Database, settings: Mapping[str, Any]) -> bool:
    """Records the settings in force, unless the latest fact about settings says the same.

    ``settings``: JSON values without secrets; the audit trail shows them. Returns True if a fact
    was written.
    """

    def work(connection: Connection) -> bool:
        latest = connection.execute(_LATEST).scalar_one_or_none()
        if latest is not None and canonical(json.loads(latest)["state"]) == canonical(settings):
            return False
        action, name = "service.settings", "service"
        kind = FactKind.SETTINGS
        record(connection, changed(kind, b"", 0, action, name, settings, settings, None))
        return True

    return database.write(work)
