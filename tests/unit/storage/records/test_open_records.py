"""Open versions: checked byte by byte, read by queries without opening anything."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from mechanisms.model.domains import PrefixDomain
from mechanisms.model.records import PrefixRecords
from storage.files.arrays import write_arrays
from storage.files.manifest import (
    DIGESTS,
    MANIFEST,
    DamagedFolder,
    check_files,
    manifest_digest,
    read_manifest,
)
from storage.records.data_folder import Files
from storage.records.open_records import OpenRecords

DOMAIN = PrefixDomain((1.0, 2.0, 3.0))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def published(files: Files, dataset: int, version: int, cutoff: int = 2) -> Path:
    staging = files.staging_folder(dataset)
    write_arrays(staging, "prefix", {"cutoff": np.array([cutoff], np.int64)})
    files.publish(staging, dataset, version)
    return files.version_folder(dataset, version)


def without_digests(folder: Path) -> None:
    """Make the folder one of the release before there were digests."""
    manifest = json.loads((folder / MANIFEST).read_bytes())
    del manifest["salt"]
    for entry in manifest["arrays"]:
        del entry["size"], entry["sha256"]
    (folder / MANIFEST).write_text(json.dumps({**manifest, "format": 2}))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_query_gets_what_is_open_and_opens_nothing(files: Files) -> None:
    records = OpenRecords(files)
    published(files, 1, 1)
    assert records.get(1, 1) is None
    records.open(1, 1, DOMAIN)
    assert records.get(1, 1) == PrefixRecords(2)
    assert records.get(1, 1) is records.get(1, 1)
    assert records.get(1, 2) is None
    assert records.get(2, 1) is None


def test_a_version_is_read_from_its_instant_on(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = OpenRecords(files)
    published(files, 1, 1)
    instant = time.monotonic() + 3600
    records.open(1, 1, DOMAIN, visible_from=lambda: instant)
    assert records.listed() == {(1, 1)}
    assert records.get(1, 1) is None
    monkeypatch.setattr(time, "monotonic", lambda: instant)
    assert records.get(1, 1) == PrefixRecords(2)


def test_what_is_removed_is_closed(files: Files) -> None:
    records = OpenRecords(files)
    for version in (1, 2, 3):
        published(files, 7, version)
        records.open(7, version, DOMAIN)
    (files.version_folder(7, 2) / MANIFEST).unlink()
    records.forget_removed()
    assert records.listed() == {(7, 1), (7, 3)}
    records.forget(7, 3)
    records.forget(7, 3)
    assert records.get(7, 3) is None


def test_no_query_and_no_number_of_datasets_closes_a_version(files: Files) -> None:
    records, count = OpenRecords(files), 100
    before = descriptors()
    for dataset in range(1, count + 1):
        published(files, dataset, 1)
        records.open(dataset, 1, DOMAIN)
    assert all(records.get(dataset, 1) is not None for dataset in range(1, count + 1))
    assert descriptors() == before, "an open version holds no descriptor"


def test_no_flipped_byte_is_ever_opened(files: Files) -> None:
    folder = published(files, 1, 1)
    for path in sorted(folder.glob("*.npy")):
        whole = path.read_bytes()
        for place in range(len(whole)):
            damaged = bytearray(whole)
            damaged[place] ^= 1
            path.write_bytes(damaged)
            records = OpenRecords(files)
            with pytest.raises(DamagedFolder):
                records.open(1, 1, DOMAIN)
            assert records.get(1, 1) is None
        for other in (whole[:-1], whole + b"\0", b""):
            path.write_bytes(other)
            with pytest.raises(DamagedFolder):
                OpenRecords(files).open(1, 1, DOMAIN)
        path.write_bytes(whole)
    OpenRecords(files).open(1, 1, DOMAIN)


def test_a_damaged_manifest_is_no_other_error(files: Files) -> None:
    folder = published(files, 1, 1)
    whole = (folder / MANIFEST).read_bytes()
    values = json.loads(whole)
    contents = [b"", b"[]", b"\xff", whole[:-2], json.dumps({**values, "format": 9}).encode()]
    contents += [
        json.dumps({key: value for key, value in values.items() if key != left_out}).encode()
        for left_out in values
    ]
    outside = {**values["arrays"][0], "file": "../1/0.npy"}
    contents.append(json.dumps({**values, "arrays": [outside]}).encode())
    for content in contents:
        (folder / MANIFEST).write_bytes(content)
        with pytest.raises(DamagedFolder):
            OpenRecords(files).open(1, 1, DOMAIN)
    (folder / MANIFEST).unlink()
    with pytest.raises(FileNotFoundError):
        OpenRecords(files).open(1, 1, DOMAIN)


def test_equal_records_have_digests_that_say_nothing(files: Files) -> None:
    """Unsalted digests would name the records among guesses, from a published head."""
    folders = [published(files, dataset, 1) for dataset in (1, 2)]
    first, second = map(read_manifest, folders)
    assert first.salt != second.salt
    assert len(first.salt) == 32
    assert first.arrays[0].size == second.arrays[0].size
    assert first.arrays[0].sha256 != second.arrays[0].sha256
    assert manifest_digest(folders[0]) != manifest_digest(folders[1])
    assert check_files(folders[0]) == manifest_digest(folders[0])


def test_a_version_without_digests_gets_them_once(files: Files) -> None:
    folder = published(files, 1, 1)
    without_digests(folder)
    OpenRecords(files).open(1, 1, DOMAIN)
    adopted, digest = (folder / DIGESTS).read_bytes(), manifest_digest(folder)
    files.adopt(folder)  # simulates another process that adds the digests concurrently
    OpenRecords(files).open(1, 1, DOMAIN)
    assert (folder / DIGESTS).read_bytes() == adopted
    assert manifest_digest(folder) == digest
    assert sorted(path.name for path in folder.iterdir()) == ["0.npy", DIGESTS, MANIFEST]
    content = bytearray((folder / "0.npy").read_bytes())
    content[-8] ^= 1
    (folder / "0.npy").write_bytes(content)
    with pytest.raises(DamagedFolder):
        OpenRecords(files).open(1, 1, DOMAIN)


def test_only_the_manifest_that_was_published_is_opened(files: Files) -> None:
    """Whoever replaces files and manifest together is found by the digest of the manifest."""
    published(files, 1, 1, cutoff=1)
    records = OpenRecords(files)
    records.open(1, 1, DOMAIN)
    expected = records.manifest(1, 1)
    OpenRecords(files).open(1, 1, DOMAIN, expected=expected)
    published(files, 1, 1, cutoff=2)
    OpenRecords(files).open(1, 1, DOMAIN)
    with pytest.raises(DamagedFolder):
        OpenRecords(files).open(1, 1, DOMAIN, expected=expected)
