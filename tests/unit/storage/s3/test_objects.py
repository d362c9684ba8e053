"""Objects of a store, as the library lists them."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("s3fs")

from storage.s3.objects import ObjectStore


def test_a_folder_in_a_listing_is_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library returns the folder itself if its first object appears during the listing."""
    store = ObjectStore("s3://bucket/prefix", key="key", secret="secret")
    listing = {
        "bucket/prefix/incoming": {"type": "directory", "size": 0},
        "bucket/prefix/incoming/": {"type": "file", "LastModified": datetime.now(UTC)},
        "bucket/prefix/ledger": {"type": "file", "LastModified": datetime.fromtimestamp(7, UTC)},
    }
    monkeypatch.setattr(store._files, "find", lambda *_, **__: listing)
    assert store.names("") == {"ledger": 7.0}
