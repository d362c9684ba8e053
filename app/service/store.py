"""The store of prepared records. Its library is loaded only if the settings name a store."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from app.config.settings import Settings
from app.service import wings
from storage.files.shared import Shared
from storage.records.data_folder import Files


@contextmanager
def opened_files(settings: Settings, root: Path) -> Iterator[Files]:
    """The files of a service on its data folder."""
    if settings.store is None:
        yield Files(root)
        return
    with _cached(settings, root) as store:
        store.watch()
        yield wings.store("remote").RemoteFiles(root, store)


@contextmanager
def opened_shared(settings: Settings, root: Path) -> Iterator[Shared]:
    """The files that a worker shares with its service: the data folder or the store."""
    if settings.store is None:
        yield Shared(root)
        return
    with _cached(settings, root) as store:
        yield store


def named_store(settings: Settings) -> Any:
    """The store that ``PURSE_STORE`` names, without a request to it."""
    key, secret = settings.store_key, settings.store_secret
    return wings.store("objects").ObjectStore(
        settings.store or "",
        endpoint=settings.store_endpoint,
        key=None if key is None else key.get_secret_value(),
        secret=None if secret is None else secret.get_secret_value(),
    )


@contextmanager
def _cached(settings: Settings, root: Path) -> Iterator[Any]:
    named = named_store(settings)
    store = wings.store("cache").CachedStore(named, root, settings.store_cache)
    store.start()
    try:
        yield store
    finally:
        store.close()
