"""What an API key may do: all that its user may, or less.

Danger: a key with a limit is handed to programs that are trusted less than their user. So it acts
as an analyst alone, and no restricted key has the rights of an admin, who could issue other keys.
"""

import json
from dataclasses import dataclass
from typing import Any

ANALYST = frozenset({"analyst"})
ADMIN = frozenset({"admin"})


@dataclass(frozen=True, slots=True)
class KeyScope:
    """The restrictions of one key.

    ``limited_key``: the id of the key if an account of its own takes its charges as well.
    ``datasets``: the ids of the only datasets that it may query; None for all.
    ``until_us``: the moment from which on it is refused, microseconds; None for never.
    """

    limited_key: str | None = None
    datasets: frozenset[int] | None = None
    until_us: int | None = None

    @classmethod
    def of(cls, key_id: str, row: Any) -> "KeyScope":
        """The scope in a row with the columns ``limited``, ``datasets`` and ``until_us``."""
        if not row.limited and row.datasets is None and row.until_us is None:
            return WHOLE
        datasets = None if row.datasets is None else frozenset(json.loads(row.datasets))
        return cls(key_id if row.limited else None, datasets, row.until_us)

    @property
    def is_restricted(self) -> bool:
        return self != WHOLE

    def admits(self, dataset_id: int) -> bool:
        """True if the key may query this dataset."""
        return self.datasets is None or dataset_id in self.datasets

    def roles(self, roles: frozenset[str]) -> frozenset[str]:
        """Those of its user's roles in which the key may act."""
        if self.limited_key is not None or self.datasets is not None:
            return roles & ANALYST
        return roles - ADMIN if self.is_restricted else roles


#: The scope of a key without restrictions, and of a user without a key.
WHOLE = KeyScope()


def stored_datasets(datasets: frozenset[int] | None) -> str | None:
    """The value of the column ``datasets``: a JSON list in ascending order, or None for all."""
    return None if datasets is None else json.dumps(sorted(datasets), separators=(",", ":"))
