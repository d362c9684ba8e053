"""Which dataset a caller may see; what they may not see does not exist, as far as they can tell."""

from __future__ import annotations

from storage.catalogue.datasets import Datasets, StoredDataset
from storage.errors import NotFound
from storage.people.users import User


def visible(datasets: Datasets, name: str, user: User) -> StoredDataset:
    """The dataset of that name. Raises NotFound when there is none or the caller may not see it."""
    stored = datasets.find(name, lambda row: datasets.visible_to(row, user))
    if stored is None:
        raise NotFound
    return stored


def owned(datasets: Datasets, name: str, user: User) -> StoredDataset:
    """The same for what only its owner may do."""
    stored = datasets.find(name, lambda row: row.owner_id == user.id)
    if stored is None:
        raise NotFound
    return stored
