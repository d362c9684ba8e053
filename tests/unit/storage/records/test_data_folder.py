"""The data folder: private modes, bounded uploads, whole folders or none."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from storage.errors import OutOfRoom, TooLarge
from storage.files.arrays import open_arrays, write_arrays
from storage.files.manifest import FORMAT, DamagedFolder
from storage.records.data_folder import Files


@pytest.fixture(autouse=True)
def _generous_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(root: Path) -> set[tuple[bool, int]]:
    paths = [root, *root.rglob("*")]
    return {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in paths}


def test_everything_is_private(tmp_path: Path) -> None:
    files = Files(tmp_path / "data" / "deep")
    with files.incoming(100) as upload:
        upload.write(b"secret")
        files.write_labels(7, ["a", "b"])
        write_arrays(files.staging_folder(7), "test", {"a": np.arange(3)})
        assert modes(files.root) == {(True, 0o700), (False, 0o600)}


def test_an_upload_is_counted_and_leaves_nothing(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with files.incoming(6) as upload:
        upload.write(b"abc")
        upload.write(memoryview(b"def"))
        upload.close()
        assert (upload.size, upload.path.read_bytes()) == (6, b"abcdef")
        assert upload.path.parent == tmp_path / "incoming"
    with pytest.raises(TooLarge), files.incoming(6) as upload:
        upload.write(b"abcdefg")
    with pytest.raises(RuntimeError), files.incoming(6) as upload:
        raise RuntimeError
    assert list((tmp_path / "incoming").iterdir()) == []
    with files.incoming(6) as one, files.incoming(6) as two:
        assert one.path != two.path


def test_the_sweep_takes_only_what_is_old(tmp_path: Path) -> None:
    files = Files(tmp_path)
    staging = files.staging_folder(1)
    write_arrays(staging, "test", {})
    version = files.version_folder(1, 1)
    write_arrays(version, "test", {})
    orphan = tmp_path / "incoming" / "orphan"
    orphan.touch()
    job = tmp_path / "cluster" / "job"
    job.mkdir(parents=True)
    array = tmp_path / "cluster" / "array.npy"
    array.touch()
    files.sweep()
    assert staging.exists()
    assert orphan.exists()
    for path in (staging, version, orphan, job, array):
        os.utime(path, (0, 0))
    files.sweep()
    assert not any(path.exists() for path in (staging, orphan, job, array))
    assert version.exists()


def test_publishing_gives_the_final_name(tmp_path: Path) -> None:
    files = Files(tmp_path)
    # The second publication replaces the files of the first one, whose transaction was not
    # committed.
    for content in (1, 2):
        staging = files.staging_folder(3)
        write_arrays(staging, "test", {"a": np.array([content])})
        files.publish(staging, 3, 1)
        with files.version(3, 1) as folder:
            assert folder == tmp_path / "datasets" / "3" / "1"
            assert open_arrays(folder, "test")[1]["a"].tolist() == [content]
        assert not staging.exists()


def test_labels_replace_those_of_a_crash(tmp_path: Path) -> None:
    files = Files(tmp_path)
    with pytest.raises(FileNotFoundError):
        files.labels(1)
    for labels in ([3, 1], ["a"]):
        files.write_labels(1, labels)  # type: ignore[arg-type]
        assert list(files.labels(1)) == labels


ARRAYS = {"a/../b": np.arange(5, dtype=np.int32), "": np.zeros(0, np.uint8), "é": np.array([1.5])}


def test_arrays_come_back_read_only(tmp_path: Path) -> None:
    write_arrays(tmp_path / "v", "test", ARRAYS)
    kind, opened = open_arrays(tmp_path / "v", "other", "test")
    assert (kind, list(opened)) == ("test", list(ARRAYS))
    for name, array in ARRAYS.items():
        assert type(opened[name]) is np.ndarray
        assert opened[name].dtype == array.dtype
        assert np.array_equal(opened[name], array)
        assert not opened[name].flags.writeable
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v"]


def test_a_folder_is_whole_or_absent(tmp_path: Path) -> None:
    for bad in (np.array([object()]), np.zeros((2, 2))):
        with pytest.raises(ValueError):
            write_arrays(tmp_path / "v", "test", {**ARRAYS, "bad": bad})
    assert list(tmp_path.iterdir()) == []
    write_arrays(tmp_path / "v", "test", ARRAYS)
    with pytest.raises(FileExistsError):
        write_arrays(tmp_path / "v", "test", {})
    assert len(open_arrays(tmp_path / "v", "test")[1]) == 3


def test_damage_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "v"
    write_arrays(folder, "test", ARRAYS)
    with pytest.raises(DamagedFolder):
        open_arrays(folder, "graph")
    whole = (folder / "0.npy").read_bytes()
    other = (folder / "2.npy").read_bytes()
    for content in (whole[:-1], whole[:50], b"", other, b"x" * len(whole)):
        (folder / "0.npy").write_bytes(content)
        with pytest.raises(DamagedFolder):
            open_arrays(folder, "test")
    (folder / "0.npy").write_bytes(whole)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": FORMAT + 1}))
    with pytest.raises(DamagedFolder):
        open_arrays(folder, "test")
    with pytest.raises(FileNotFoundError):
        open_arrays(tmp_path / "w", "test")


def test_a_node_list_is_refused_while_no_descriptor_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first request that needs the names of a dataset opens them."""
    files = Files(tmp_path)
    files.write_labels(7, ["a", "b"])
    assert list(files.labels(7)) == ["a", "b"]

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail)
        with pytest.raises(OutOfRoom):
            files.labels(7)
    with pytest.raises(FileNotFoundError):
        files.labels(8)
