"""Without published heads a ledger with accounts takes no charge, and nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import func, select

from storage.assurance.adoption import HeadsExist, adopt, adopt_once
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.database.tables import budget_account
from tests.support.world import World, contents, loss, request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "heads" / "heads.log"


def frozen(world: World) -> int:
    counted = select(func.count()).where(budget_account.c.frozen == 1)
    with world.database.read() as connection:
        return int(connection.execute(counted).scalar_one())


@pytest.mark.parametrize("content", [None, b"", b"\n", b"rubbish\n"])
def test_without_heads_nothing_is_written_and_nobody_frozen(
    world: World, path: Path, content: bytes | None
) -> None:
    dataset, analyst = world.ready()
    world.ledger.reserve(request(dataset, analyst))
    if content is not None:
        path.parent.mkdir()
        path.write_bytes(content)
    before = contents(world.database)
    publisher = Publisher(world.database, HeadsLog(path))
    for _ in range(2):
        assert publisher.look() == []
        assert publisher.lacks_heads
    assert contents(world.database) == before
    assert (path.read_bytes() if path.exists() else None) == content


def test_a_freeze_mark_is_no_head(world: World, path: Path) -> None:
    """A backup or an alarm writes marks even where the heads are lost."""
    world.ready()
    HeadsLog(path).mark([7])
    publisher = Publisher(world.database, HeadsLog(path))
    publisher.look()
    assert publisher.lacks_heads


def test_a_ledger_that_began_empty_has_heads_after_a_crash(world: World, path: Path) -> None:
    """Its first account was opened after the last look, so no state of it was published."""
    publisher = Publisher(world.database, HeadsLog(path))
    publisher.look()
    world.ready()
    later = Publisher(world.database, HeadsLog(path))
    later.look()
    assert (publisher.lacks_heads, later.lacks_heads) == (False, False)


def test_heads_that_another_process_writes_end_the_refusal(
    world: World, path: Path, tmp_path: Path
) -> None:
    world.ready()
    publisher = Publisher(world.database, HeadsLog(path))
    publisher.look()
    assert publisher.lacks_heads
    other = HeadsLog(tmp_path / "other.log")
    other.begin(1)
    Publisher(world.database, other).look()
    path.parent.mkdir()
    shutil.copy(other.path, path)
    assert publisher.look() == []
    assert not publisher.lacks_heads


def test_the_second_path_ends_the_refusal_and_restores_the_first(
    world: World, path: Path, tmp_path: Path
) -> None:
    dataset, analyst = world.ready()
    copy = tmp_path / "elsewhere" / "copy.log"
    log = HeadsLog(path, copy)
    log.begin(1)
    Publisher(world.database, log).look()
    assert copy.read_bytes() == path.read_bytes()
    path.unlink()
    publisher = Publisher(world.database, HeadsLog(path, copy))
    publisher.look()
    assert not publisher.lacks_heads
    first, second = HeadsLog(path), HeadsLog(copy)
    first.refresh()
    second.refresh()
    assert first.published == second.published != {}
    # If the two files of heads differ, the later state of each account counts, whichever file has
    # it.
    world.ledger.reserve(request(dataset, analyst))
    old = path.read_bytes()
    publisher.look()
    path.write_bytes(old)
    both = HeadsLog(path, copy)
    both.refresh()
    second.refresh()
    assert both.published == second.published != first.published


@pytest.mark.parametrize("loss_of", ["deleted", "emptied", "replaced", "cut"])
def test_a_file_that_is_lost_while_a_process_runs_is_written_again(
    world: World, path: Path, loss_of: str
) -> None:
    dataset, analyst = world.ready()
    log = HeadsLog(path)
    log.begin(1)
    log.mark([5])
    publisher = Publisher(world.database, log)
    publisher.look()
    old = path.read_bytes()
    world.ledger.reserve(request(dataset, analyst))
    publisher.look()
    published = dict(log.published)
    if loss_of == "deleted":
        path.unlink()
    elif loss_of == "emptied":
        path.write_bytes(b"")
    elif loss_of == "replaced":
        path.with_suffix(".old").write_bytes(old)
        path.with_suffix(".old").rename(path)
    else:
        path.write_bytes(old)
    publisher.look()
    again = HeadsLog(path)
    again.refresh()
    assert (again.published, again.marks, again.exist) == (published, {5}, True)
    size = path.stat().st_size
    publisher.look()
    assert path.stat().st_size == size


def test_one_file_that_cannot_be_written_does_not_stop_the_other(
    world: World, path: Path, tmp_path: Path
) -> None:
    world.ready()
    (tmp_path / "file").write_bytes(b"")
    HeadsLog(path).begin(1)
    publisher = Publisher(world.database, HeadsLog(path, tmp_path / "file" / "copy.log"))
    with pytest.raises(OSError, match="file"):
        publisher.look()
    log = HeadsLog(path)
    log.refresh()
    assert len(log.published) == 2


def test_a_file_that_can_no_longer_be_read_does_not_stop_the_other(
    world: World, path: Path, tmp_path: Path
) -> None:
    """As when the disk of the copy is gone while the service runs."""
    dataset, analyst = world.ready()
    copy = tmp_path / "copy.log"
    log = HeadsLog(path, copy)
    log.begin(1)
    sent: list[bytes] = []
    publisher = Publisher(world.database, log, lambda lines: not sent.extend(lines))
    publisher.look()
    lines, content = len(sent), copy.read_bytes()
    copy.unlink()
    copy.mkdir()
    world.ledger.reserve(request(dataset, analyst))
    for _ in range(2):
        with pytest.raises(IsADirectoryError):
            publisher.look()
    # The three new lines state the heads of two accounts and those of the journal.
    assert len(sent) == lines + 3
    first, second = HeadsLog(path), HeadsLog(copy)
    first.refresh()
    assert sorted(state.seq for state in first.published.values()) == [2, 2]
    with pytest.raises(IsADirectoryError):
        # A process that has never read the copy of the heads file cannot know its content, so it
        # reports that the copy is unreadable.
        second.refresh()
    copy.rmdir()
    copy.write_bytes(content)
    publisher.look()
    second.refresh()
    assert second.published == first.published


def test_adoption_publishes_the_ledger_as_it_is_and_charges_nothing(
    world: World, path: Path
) -> None:
    dataset, analyst = world.ready()
    world.ledger.reserve(request(dataset, analyst, loss("0.2")))
    charged = world.charged(dataset, analyst)
    publisher = Publisher(world.database, HeadsLog(path))
    publisher.look()
    assert adopt(world.database, HeadsLog(path)) == 2
    assert publisher.look() == []
    assert not publisher.lacks_heads
    assert (world.charged(dataset, analyst), frozen(world)) == (charged, 0)
    with pytest.raises(HeadsExist):
        adopt(world.database, HeadsLog(path))


def test_a_service_adopts_by_itself_only_at_its_first_start(world: World, path: Path) -> None:
    world.ready()
    assert adopt_once(world.database, HeadsLog(path)) == 2
    assert adopt_once(world.database, HeadsLog(path)) is None
    path.unlink()
    assert adopt_once(world.database, HeadsLog(path)) is None
    publisher = Publisher(world.database, HeadsLog(path))
    publisher.look()
    assert publisher.lacks_heads


@pytest.mark.parametrize("accounts", [0, 2])
def test_a_first_start_with_heads_adopts_nothing_then_or_later(
    world: World, path: Path, accounts: int
) -> None:
    log = HeadsLog(path)
    if accounts:
        world.ready()
        log.begin(1)
    assert adopt_once(world.database, log) is None
    path.unlink(missing_ok=True)
    if not accounts:
        world.ready()
    assert adopt_once(world.database, HeadsLog(path)) is None


def test_every_line_is_delivered_and_again_after_a_failure(world: World, path: Path) -> None:
    dataset, analyst = world.ready()
    sent: list[bytes] = []
    works = [False, True, True, False, True]

    def deliver(lines: object) -> bool:
        sent.append(b"".join(lines))  # type: ignore[arg-type]
        return works.pop(0)

    log = HeadsLog(path)
    log.begin(1)
    publisher = Publisher(world.database, log, deliver)
    for _ in range(3):
        publisher.look()
    # The first delivery fails, so the lines with the heads of both accounts are sent again. They
    # were written to the file before, and no account has changed since.
    assert len(sent) == 2
    assert [text.count(b'"account"') for text in sent] == [2, 2]
    world.ledger.reserve(request(dataset, analyst))
    works.pop(0)
    publisher.look()
    publisher.look()
    publisher.look()
    assert len(sent) == 4
    assert sent[2].count(b'"seq":2') == sent[3].count(b'"seq":2') == 2
