"""PostgreSQL's own dump, put back: frozen from the first look, and it cannot un-spend."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from accounting.errors import AccountFrozen
from app.service.heads import watched
from storage.assurance.heads import HeadsLog
from storage.assurance.publishing import Publisher
from storage.assurance.rollback import accept
from storage.assurance.verification import verify
from storage.database.database import Database
from storage.ledger.ledger import Reservation
from tests.support.blocking import BlockingLedger
from tests.support.databases import fresh
from tests.support.servers import binaries
from tests.support.world import World, loss, request

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.parametrize("kind", ["postgresql"], indirect=True),
]


@pytest.fixture
def tools() -> Path:
    folder = binaries()
    if folder is None or not (folder / "pg_dump").exists():
        pytest.skip("needs pg_dump and pg_restore")
    return folder


@pytest.fixture
def elsewhere(postgresql: str) -> Iterator[str]:
    """The URL of an empty database."""
    with fresh(postgresql) as url:
        yield url


def plain(url: str) -> str:
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def test_a_dump_is_restored_frozen_and_un_spends_nothing(
    world: World, url: str, elsewhere: str, tools: Path, tmp_path: Path
) -> None:
    dataset, analyst = world.ready(loss(1), cap=loss(3))

    def charged(ledger: BlockingLedger, epsilon: str) -> Reservation:
        created = ledger.reserve(request(dataset, analyst, loss(epsilon)))
        assert isinstance(created, Reservation)
        return created

    log = HeadsLog(tmp_path / "heads.log")
    log.begin(1)
    first = charged(world.ledger, "0.1")
    assert world.ledger.settle(first, status=201, body=b"kept", release_us=0)
    Publisher(world.database, log).look()
    dump = tmp_path / "purse.dump"
    subprocess.run([tools / "pg_dump", "--format=custom", f"--file={dump}", plain(url)], check=True)
    # These charges are later than the dump, so the restored database lacks them.
    for _ in range(3):
        charged(world.ledger, "0.2")
    Publisher(world.database, log).look()
    spent = world.charged(dataset, analyst)

    subprocess.run(
        [tools / "pg_restore", "--exit-on-error", f"--dbname={plain(elsewhere)}", dump], check=True
    )
    restored = Database.open(elsewhere, tmp_path)
    try:
        assert verify(restored).valid
        bad = verify(restored, heads=log.published)
        assert not bad.valid
        ledger = BlockingLedger(restored)
        # The service also compares the ledger with the published heads (the last hashes of its
        # chains) before its first request.
        with watched(restored, HeadsLog(log.path), 3600):
            with pytest.raises(AccountFrozen):
                charged(ledger, "0.01")
            account = ledger.account(dataset.id, analyst.id)
            assert account is not None
            assert account.account.charged == loss("0.1")
        accept(restored, HeadsLog(log.path))
        account = ledger.account(dataset.id, analyst.id)
        assert account is not None
        for sums, before in zip((account, ledger.cap(dataset.id)), spent, strict=True):
            # The lost charges counted in ε alone, so their ρ is unknown. The largest possible ρ was
            # charged, and the sums are compared without it.
            assert replace(sums.account.charged, rho_femto=0) == before
        charged(ledger, "0.3")
        with watched(restored, HeadsLog(log.path), 3600):
            pass
        heads = HeadsLog(log.path)
        heads.refresh()
        assert verify(restored, heads=heads.published).valid
        # The restored database has the triggers that refuse changes of the ledger, such as this
        # deletion.
        with pytest.raises(DBAPIError), restored.engine.begin() as connection:
            connection.execute(text("DELETE FROM entry"))
    finally:
        restored.close()
