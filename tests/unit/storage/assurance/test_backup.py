"""A backup taken while the service writes: consistent, frozen, and it cannot un-spend."""

from __future__ import annotations

import shutil
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from accounting.errors import AccountFrozen
from storage.assurance.backup import DestinationTaken, back_up
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.assurance.rollback import HeadsTooOld, accept
from storage.assurance.verification import verify
from storage.catalogue.datasets import Datasets
from storage.database.database import Database
from storage.errors import UnusableDatabase
from storage.ledger.ledger import Reservation
from storage.records.data_folder import Files
from tests.support.blocking import BlockingLedger
from tests.support.patience import PATIENCE, until
from tests.support.workers import patiently
from tests.support.world import World, loss, request

sqlite_only = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.fixture
def log(tmp_path: Path) -> HeadsLog:
    log = HeadsLog(tmp_path / "data" / "heads.log")
    log.begin(1)
    return log


def publish_heads(world: World, log: HeadsLog) -> None:
    Publisher(world.database, log).look()


def opened(folder: Path) -> Iterator[Database]:
    database = Database.open(f"sqlite:///{folder}/privypurse.db", folder)
    yield database
    database.close()


@sqlite_only
def test_a_backup_under_load_is_restored_frozen_and_un_spends_nothing(
    world: World, log: HeadsLog, tmp_path: Path
) -> None:
    dataset, analyst = world.ready(loss(1000), cap=loss(1000))
    stop, started = threading.Event(), threading.Event()

    def ask() -> None:
        while not stop.is_set():
            body = request(dataset, analyst, loss("0.01"))
            reservation = patiently(partial(world.ledger.reserve, body))
            assert isinstance(reservation, Reservation)
            settle = partial(world.ledger.settle, reservation, status=201, body=b"x", release_us=0)
            assert patiently(settle)
            started.set()

    with ThreadPoolExecutor(8) as threads:
        asking = [threads.submit(ask) for _ in range(8)]
        started.wait(PATIENCE)
        publish_heads(world, log)
        back_up(world.database, tmp_path / "data", log, tmp_path / "backup")
        after = world.charged(dataset, analyst)[0]
        # The analysts go on sending queries, so the ledger charges more than the backup contains.
        until(lambda: world.charged(dataset, analyst)[0] != after)
        stop.set()
        for one in asking:
            one.result()
    publish_heads(world, log)
    spent = world.charged(dataset, analyst)
    assert verify(world.database, heads=log.published).valid

    restored = tmp_path / "restored"
    shutil.copytree(tmp_path / "backup", restored)
    with_old_heads = HeadsLog(restored / "heads.log")
    for database in opened(restored):
        assert verify(database).valid
        ledger = BlockingLedger(database)
        with pytest.raises(AccountFrozen):
            ledger.reserve(request(dataset, analyst, loss("0.01")))
        Publisher(database, with_old_heads).look()
        with pytest.raises(HeadsTooOld):
            accept(database, with_old_heads)
        # The operator replaces the old heads file by the one that has grown since the backup.
        shutil.copyfile(log.path, restored / "heads.log")
        heads = HeadsLog(restored / "heads.log")
        Publisher(database, heads).look()
        accept(database, heads)
        account = ledger.account(dataset.id, analyst.id)
        assert account is not None
        for one, before in zip((account, ledger.cap(dataset.id)), spent, strict=True):
            assert one.account.charged.amounts[:2] == before.amounts[:2]
            assert one.account.charged.rho_femto >= before.rho_femto
        assert isinstance(ledger.reserve(request(dataset, analyst, loss("0.01"))), Reservation)
        assert Publisher(database, heads).look() == []
        assert verify(database, heads=heads.published).valid


@sqlite_only
def test_it_holds_what_queries_read_and_nobody_else_may(
    world: World, log: HeadsLog, tmp_path: Path
) -> None:
    dataset, analyst = world.ready()
    running = world.ledger.reserve(request(dataset, analyst))
    assert isinstance(running, Reservation)
    dataset = world.publish(dataset)
    dataset = world.publish(dataset)
    (tmp_path / "data" / "datasets" / str(dataset.id) / "3" / "array").write_bytes(b"records")
    world.dataset(ready=False)
    publish_heads(world, log)
    back_up(world.database, tmp_path / "data", log, tmp_path / "backup")
    copied = tmp_path / "backup" / "datasets" / str(dataset.id)
    # The backup contains version 1, because a retry of the running query reads it. No query reads
    # version 2.
    assert sorted(path.name for path in copied.iterdir()) == ["1", "3"]
    assert (copied / "3" / "array").read_bytes() == b"records"
    for path in (tmp_path / "backup").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    names = sorted(path.name for path in (tmp_path / "backup").iterdir())
    assert names == ["datasets", "heads.log", "privypurse.db"]
    for database in opened(tmp_path / "backup"):
        restored = Datasets(database, Files(tmp_path / "elsewhere")).find(dataset.name)
        assert restored is not None
        assert restored.version == 3


@sqlite_only
def test_without_heads_everything_is_spent(world: World, log: HeadsLog, tmp_path: Path) -> None:
    dataset, analyst = world.ready(loss(1), cap=loss(3))
    back_up(world.database, tmp_path / "data", log, tmp_path / "backup")
    for database in opened(tmp_path / "backup"):
        lost = HeadsLog(tmp_path / "backup" / "heads.log")
        with pytest.raises(HeadsTooOld):
            accept(database, lost)
        accept(database, lost, heads_lost=True)
        ledger = BlockingLedger(database)
        account = ledger.account(dataset.id, analyst.id)
        assert account is not None
        assert account.account.charged.epsilon_nano == 10**9
        assert ledger.cap(dataset.id).account.charged.epsilon_nano == 3 * 10**9


@sqlite_only
def test_nothing_is_written_over_and_nothing_half_done_is_left(
    world: World, log: HeadsLog, tmp_path: Path
) -> None:
    dataset, _ = world.ready()
    (tmp_path / "backup").mkdir()
    with pytest.raises(DestinationTaken):
        back_up(world.database, tmp_path / "data", log, tmp_path / "backup")
    shutil.rmtree(tmp_path / "data" / "datasets" / str(dataset.id))
    before = set(tmp_path.iterdir())
    with pytest.raises(FileNotFoundError):
        back_up(world.database, tmp_path / "data", log, tmp_path / "other")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("kind", ["postgresql"], indirect=True)
def test_postgresql_has_tools_of_its_own(world: World, log: HeadsLog, tmp_path: Path) -> None:
    with pytest.raises(UnusableDatabase, match="pg_dump"):
        back_up(world.database, tmp_path / "data", log, tmp_path / "backup")
