"""The secret key of a dataset with persons: it chooses which rows of a person are kept.

Danger: whoever has the key and the ids of some persons can find their numbers in the prepared
records. So the key is in the database and not beside the records, no other statement selects it,
and it is deleted when the records are withdrawn. All versions until then are prepared with it.
"""

import secrets

from sqlalchemy import Connection, select, update

from storage.database.tables import dataset

#: The length in bytes of the secret that chooses which rows of a person are kept.
LENGTH = 32
_d = dataset.c


def person_key(connection: Connection, dataset_id: int) -> bytes:
    """The key of a dataset, which the first call draws."""
    absent = update(dataset).where(_d.id == dataset_id, _d.person_key.is_(None))
    connection.execute(absent.values(person_key=secrets.token_bytes(LENGTH)))
    key = connection.execute(select(_d.person_key).where(_d.id == dataset_id)).scalar_one()
    return bytes(key)


def delete_person_key(connection: Connection, dataset_id: int) -> None:
    """Deletes the key. Records that are uploaded later are prepared with a new one."""
    has_key = update(dataset).where(_d.id == dataset_id, _d.person_key.is_not(None))
    connection.execute(has_key.values(person_key=None))
