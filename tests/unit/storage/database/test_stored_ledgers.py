"""Ledgers that earlier schemas wrote: each migrates, verifies, replays its keys and goes on.

Each file is the SQL of a ledger, written by the code of its schema. An analyst has four queries in
ε and δ: two are answered, one is given back, and one runs. Since 0009 a second analyst has an
account that counts in ρ as well, and since 0012 Gaussian noise on it. The migrations 0010
and 0011 came with 0012. ``test_upgrades`` begins with 0001. Only the slow run takes the
ledgers between those that began the journal, the sums in ρ, and the last schema.
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import select

from accounting.errors import BudgetExhausted
from accounting.privacy_loss import PrivacyLoss
from storage.assurance.verification import verify
from storage.database import tables
from storage.database.database import Database
from storage.errors import KeyReused, QueryReleased
from storage.ledger.ledger import Replay, Reservation, Reserve
from storage.migrations import versions
from tests.support.blocking import BlockingLedger
from tests.support.world import BODY_HASH, check_invariants, loss

FILES = sorted((Path(__file__).parent / "ledgers").glob("*.sql.gz"))
IN_EVERY_RUN = {"0003", "0007", "0008", "0009", "0015"}
#: The first version of the schema with a journal. Queries that are charged under it have facts in
#: the journal.
JOURNAL = "0008"
#: The ε-DP queries of the stored ledgers, by idempotency key: the charge, and the stored answer or
#: None.
PURE = {
    "answered": (loss("0.1"), b"the answer"),
    "with delta": (loss("0.2", "0.01"), b"another answer"),
    "given back": (loss("0.3"), None),
    "running": (loss("0.05"), None),
}
IN_RHO = {
    "in rho": (PrivacyLoss(10**8, 0, 4995834721975), b"in rho"),
    "gaussian": (PrivacyLoss(0, 0, 10**12, 1), b"gaussian"),
}


@pytest.fixture(
    params=[
        pytest.param(
            path,
            id=path.name[:4],
            marks=[] if path.name[:4] in IN_EVERY_RUN else [pytest.mark.slow],
        )
        for path in FILES
    ]
)
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def stored(file: Path, tmp_path: Path) -> Iterator[Database]:
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.executescript(gzip.decompress(file.read_bytes()).decode())
    connection.close()
    database = Database.open(f"sqlite:///{tmp_path}/ledger.db", tmp_path)
    yield database
    database.close()


def queries(database: Database) -> dict[str, tuple[int, int]]:
    """The analyst and the dataset of each query, by its key."""
    q = tables.query.c
    with database.read() as connection:
        rows = connection.execute(select(q.idem_key, q.analyst_id, q.dataset_id)).all()
    return {key: (analyst, dataset) for key, analyst, dataset in rows}


def test_a_stored_ledger_verifies_replays_and_goes_on(stored: Database, file: Path) -> None:
    assert verify(stored).valid
    if file.name >= JOURNAL:
        check_invariants(stored)
    ledger, owners = BlockingLedger(stored), queries(stored)

    def ask(key: str, new: str, charge: PrivacyLoss, hash: bytes = BODY_HASH) -> object:
        """The request that ``key`` had, under the key ``new``."""
        request = Reserve(uuid4(), *owners[key], new, hash, charge, b'{"kind":"top_k"}')
        return ledger.reserve(request)

    pure = ledger.account(owners["answered"][1], owners["answered"][0])
    assert pure is not None
    assert pure.account.charged.amounts[:2] == loss("0.35", "0.01").amounts[:2]
    assert pure.account.limit.loss == loss("2", "0.1")
    assert not pure.account.limit.has_rho
    for key, (charge, body) in (PURE | IN_RHO).items():
        if key not in owners:
            continue
        with pytest.raises(KeyReused):
            ask(key, key, charge, bytes(32))
        if body is not None:
            replay = ask(key, key, charge)
            assert isinstance(replay, Replay)
            assert (replay.status, replay.body) == (201, body)
    with pytest.raises(QueryReleased):
        ask("given back", "given back", loss("0.3"))
    taken = ask("running", "running", loss("0.05"))
    assert isinstance(taken, Reservation)
    assert taken.attempt == 2
    assert ledger.settle(taken, status=201, body=b"late", release_us=2)
    again = ledger.account(owners["answered"][1], owners["answered"][0])
    assert again is not None
    assert again.account.charged == pure.account.charged, "all of that is free"
    # The same requests under new idempotency keys are charged again, until the allowance is used
    # up.
    for key in ("answered", "with delta", "given back", "running"):
        assert isinstance(ask(key, f"{key} again", PURE[key][0]), Reservation)
    now = ledger.account(owners["answered"][1], owners["answered"][0])
    assert now is not None
    assert now.account.charged.amounts[:2] == loss("1", "0.02").amounts[:2]
    with pytest.raises(BudgetExhausted):
        ask("answered", "too much", loss("1.000000001"))
    assert verify(stored).valid
    if file.name >= JOURNAL:
        check_invariants(stored)


def test_there_is_a_ledger_of_every_schema() -> None:
    numbers = {path.name[:4] for path in FILES}
    schemas = {path.name[:4] for path in Path(versions.__path__[0]).glob("[0-9]*.py")}
    assert numbers == schemas - {"0001", "0002", "0010", "0011"}
    assert numbers > IN_EVERY_RUN
