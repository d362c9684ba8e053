"""Heads published outside the database: what is written there is read again, whatever broke."""

from __future__ import annotations

import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from accounting.privacy_loss import PrivacyLoss
from storage.assurance.heads import HeadsLog, Published
from tests.support.patience import PATIENCE


def state(account: int, seq: int, charged: int = 0) -> Published:
    return Published(account, seq, bytes([seq]) * 32, PrivacyLoss(charged, 1))


def read_heads(path: Path) -> dict[int, Published]:
    log = HeadsLog(path)
    log.refresh()
    return log.present


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
        assert (other.published, len(other.damaged)) == ({1: state(1, 1)}, 0)
        other.publish([state(1, 3)], 12)
        again = HeadsLog(path)
        again.refresh()
        # If only the end of a line of the heads file is cut off (cut = 1), the next writer ends the
        # line, and it is complete again. If more is cut off, the line counts as damaged.
        assert again.published == {1: state(1, 3)}
        assert len(again.damaged) == (0 if cut == 1 else 1)


def test_a_changed_line_is_not_believed(path: Path) -> None:
    log = HeadsLog(path)
    log.publish([state(1, 9)], 10)
    path.write_bytes(path.read_bytes().replace(b'"seq":9', b'"seq":8'))
    other = HeadsLog(path)
    other.refresh()
    assert (other.published, len(other.damaged)) == ({}, 1)


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
    assert not log.exist


def content(path: Path) -> tuple[dict[int, Published], set[int], set[int], int]:
    log = HeadsLog(path)
    log.refresh()
    return log.published, log.gone, log.marks, len(log.damaged)


def test_a_long_file_is_replaced_by_one_that_says_the_same(path: Path) -> None:
    log = HeadsLog(path)
    log.mark([77])
    log.publish([state(1, 1), state(2, 4)], 10)
    log.accept([state(1, 1)], [state(2, 4)], 11)
    path.write_bytes(path.read_bytes() + b"rubbish\n")
    path.chmod(0o640)
    reader = HeadsLog(path)
    reader.refresh()
    sizes = []
    for seq in range(2, 256):
        HeadsLog(path, long=2000).publish([state(1, seq)], seq)
        sizes.append(path.stat().st_size)
    # The heads file is replaced by a shorter one several times. It never exceeds the limit on its
    # length by more than one publication.
    assert sum(after < before for before, after in pairwise(sizes)) > 5
    assert max(sizes) < 3 * 1024 + 2000
    assert content(path) == ({1: state(1, 255), 2: state(2, 4)}, {2}, {77}, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    # A process that has read the first of these heads files reads the same content from the last
    # one.
    reader.refresh()
    assert (reader.published, reader.gone, reader.marks) == content(path)[:3]
    reader.accept([state(1, 9)], [], 12)
    log.refresh()
    assert log.published[1] == state(1, 9)


def test_a_file_of_many_streams_is_not_replaced_at_every_publication(path: Path) -> None:
    log = HeadsLog(path, long=2000)
    log.verify([], 1, False, {stream: (1, bytes(32)) for stream in range(100)})
    log.publish([state(1, 1)], 2)
    first = path.stat().st_ino
    log.publish([state(1, 2)], 3)
    assert path.stat().st_size > 2000
    assert path.stat().st_ino == first


@pytest.mark.parametrize("broken", ["open", "write", "fsync", "replace"])
def test_a_crash_while_a_file_is_replaced_loses_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    log = HeadsLog(path)
    for seq in range(1, 21):
        log.publish([state(1, seq), state(2, seq)], seq)
    before = content(path)

    class Crash(BaseException):
        pass

    real = getattr(os, broken)

    def crash(*args: object, **options: object) -> object:
        name = f"{path.name}.new"
        descriptor = isinstance(args[0], int) and os.readlink(f"/proc/self/fd/{args[0]}")
        if name in str(args[0]) or name in str(descriptor):
            if broken == "write":
                real(args[0], bytes(args[1])[:100])  # type: ignore[call-overload]
            raise Crash
        return real(*args, **options)

    monkeypatch.setattr(os, broken, crash)
    with pytest.raises(Crash):
        HeadsLog(path, long=1000).publish([state(1, 21)], 21)
    monkeypatch.undo()
    assert content(path) == ({**before[0], 1: state(1, 21)}, *before[1:])
    # The crash has left an unfinished new heads file. It does not prevent the next replacement.
    size = path.stat().st_size
    HeadsLog(path, long=1000).publish([state(2, 22)], 22)
    assert path.stat().st_size < size
    assert content(path)[0] == {1: state(1, 21), 2: state(2, 22)}


def test_many_who_publish_and_replace_lose_no_head(path: Path) -> None:
    begun = threading.Barrier(6)

    def publish(account: int) -> None:
        log = HeadsLog(path, long=3000)
        begun.wait(PATIENCE)
        for seq in range(1, 101):
            log.publish([state(account, seq)], seq)
            assert log.published[account].seq == seq
            assert read_heads(path)[account].seq == seq

    with ThreadPoolExecutor(6) as threads:
        for done in [threads.submit(publish, account) for account in range(6)]:
            done.result()
    assert content(path) == (
        {account: state(account, 100) for account in range(6)},
        set(),
        set(),
        0,
    )


def test_a_file_that_may_only_be_appended_to_grows(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = HeadsLog(path, long=1000)

    def refuse(*_paths: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "replace", refuse)
    for seq in range(1, 41):
        log.publish([state(1, seq)], seq)
    assert path.stat().st_size > 5000
    assert content(path)[0] == {1: state(1, 40)}
