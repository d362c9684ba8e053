"""The store of prepared records that an operator named, if any; only then is its library loaded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from app.config.settings import Settings
from storage.files.shared import MountedFolder, Shared
from storage.records.data_folder import Files

if TYPE_CHECKING:
    from storage.s3.cache import CachedStore
    from storage.s3.objects import ObjectStore

MISSING = (
    "a store of prepared records needs more packages:"
    " pip install --require-hashes -r requirements-cluster.lock"
)


@contextmanager
def opened_files(settings: Settings, root: Path) -> Iterator[Files]:
    """The files of a service on its data folder."""
    if settings.store is None:
        yield Files(root)
        return
    with _cached(settings, root) as store:
        from storage.s3.remote import RemoteFiles

        store.watch()
        yield RemoteFiles(root, store)


@contextmanager
def opened_shared(settings: Settings, root: Path) -> Iterator[Shared]:
    """What a worker shares with its service: the service's own folder, or its store."""
    if settings.store is None:
        yield MountedFolder(root)
        return
    with _cached(settings, root) as store:
        yield store


def named_store(settings: Settings) -> ObjectStore:
    """The store that ``PURSE_STORE`` names; nothing is asked of it."""
    try:
        from storage.s3.objects import ObjectStore
    except ImportError:
        raise SystemExit(MISSING) from None
    key, secret = settings.store_key, settings.store_secret
    return ObjectStore(
        settings.store or "",
        endpoint=settings.store_endpoint,
        key=None if key is None else key.get_secret_value(),
        secret=None if secret is None else secret.get_secret_value(),
    )


@contextmanager
def _cached(settings: Settings, root: Path) -> Iterator[CachedStore]:
    named = named_store(settings)
    from storage.s3.cache import CachedStore

    store = CachedStore(named, root, settings.store_cache)
    store.start()
    try:
        yield store
    finally:
        store.close()
