"""Heads published outside the database: what is written there is found again, whatever broke."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from accounting.privacy_loss import PrivacyLoss
from storage.heads import HeadsLog, Published, read_heads


def state(account: int, seq: int, charged: int = 0) -> Published:
    return Published(account, seq, bytes([seq]) * 32, PrivacyLoss(charged, 1))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere" / "heads.log"


def test_what_is_published_is_read_again(path: Path) -> None:
    log = HeadsLog(path)
    log.publish([state(1, 3, 7), state(2, 1)], 10)
    log.publish([state(1, 4, 8)], 11)
    assert read_heads(path) == log.published == {1: state(1, 4, 8), 2: state(2, 1)}
    assert len(path.read_text().splitlines()) == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_processes_see_each_other_and_order_does_not_matter(path: Path) -> None:
    one, two = HeadsLog(path), HeadsLog(path)
    one.publish([state(1, 5)], 10)
    two.publish([state(1, 4)], 11)
    one.refresh()
    assert one.published == two.published == {1: state(1, 5)}


def test_a_line_cut_off_spoils_neither_itself_nor_the_next(path: Path) -> None:
    log = HeadsLog(path)
    log.publish([state(1, 1), state(1, 2)], 10)
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[1]) + 1):
        path.write_bytes(whole[:-cut])
        other = HeadsLog(path)
        other.refresh()
        assert (other.published, other.damaged) == ({1: state(1, 1)}, 0)
        other.publish([state(1, 3)], 12)
        again = HeadsLog(path)
        again.refresh()
        # Without its line end alone the cut line is whole once more.
        assert again.published == {1: state(1, 3)}
        assert again.damaged == (0 if cut == 1 else 1)


def test_a_changed_line_is_not_believed(path: Path) -> None:
    log = HeadsLog(path)
    log.publish([state(1, 9)], 10)
    path.write_bytes(path.read_bytes().replace(b'"seq":9', b'"seq":8'))
    other = HeadsLog(path)
    other.refresh()
    assert (other.published, other.damaged) == ({}, 1)


def test_what_an_operator_accepts_replaces_what_was_published(path: Path) -> None:
    log = HeadsLog(path)
    log.publish([state(1, 9), state(2, 4)], 10)
    log.mark([77, 76])
    log.accept([state(1, 5)], [state(2, 4)], 11)
    other = HeadsLog(path)
    other.refresh()
    assert other.published == {1: state(1, 5), 2: state(2, 4)}
    assert (other.gone, other.marks) == ({2}, {76, 77})


def test_a_file_that_is_not_there_holds_nothing(path: Path) -> None:
    log = HeadsLog(path)
    log.refresh()
    assert log.published == {}
    with pytest.raises(FileNotFoundError):
        read_heads(path)
