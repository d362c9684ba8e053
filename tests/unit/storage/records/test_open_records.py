"""Versions stay open between queries: the latest of a dataset, until it is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechanisms.model.domains import Domain, PrefixDomain
from mechanisms.model.records import PrefixRecords
from storage.records.data_folder import Files
from storage.records.open_records import MOST, OpenRecords

DOMAIN = PrefixDomain((1.0, 2.0, 3.0))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that were opened, by dataset and version."""
    folders: list[str] = []

    def open_records(folder: Path, _: Domain) -> PrefixRecords:
        folders.append(f"{folder.parent.name}/{folder.name}")
        return PrefixRecords(int(folder.name))

    monkeypatch.setattr("storage.records.open_records.open_records", open_records)
    return folders


def test_a_version_is_opened_once(tmp_path: Path, read: list[str]) -> None:
    records = OpenRecords(Files(tmp_path))
    assert records.get(1, 1, DOMAIN) is records.get(1, 1, DOMAIN)
    assert records.get(2, 1, DOMAIN) == PrefixRecords(1)
    assert read == ["1/1", "2/1"]


def test_the_latest_version_stays_open(tmp_path: Path, read: list[str]) -> None:
    records = OpenRecords(Files(tmp_path))
    for version in (1, 2, 1, 2):
        assert records.get(7, version, DOMAIN) == PrefixRecords(version)
    assert read == ["7/1", "7/2", "7/1"]


def test_what_is_removed_is_closed(tmp_path: Path, read: list[str]) -> None:
    records = OpenRecords(Files(tmp_path))
    for forgotten in (3, 4):  # of which the first is not open
        records.get(7, 4, DOMAIN)
        records.forget(7, forgotten)
    records.get(7, 4, DOMAIN)
    assert read == ["7/4", "7/4"]


def test_so_many_datasets_stay_open(tmp_path: Path, read: list[str]) -> None:
    records = OpenRecords(Files(tmp_path))
    for dataset in range(MOST + 1):
        records.get(dataset, 1, DOMAIN)
    read.clear()
    records.get(1, 1, DOMAIN)
    records.get(0, 1, DOMAIN)
    assert read == ["0/1"]
