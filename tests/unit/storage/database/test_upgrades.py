"""A ledger written under the previous schema goes on under this one; none ever goes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, Table, column, insert, select, table, text
from sqlalchemy.exc import DBAPIError

from accounting.account import Limit
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import pure_femto
from storage.assurance.verification import verify
from storage.catalogue.datasets import Datasets
from storage.database import tables
from storage.database.adopted import COLUMNS, KEYS, digest_of_rows
from storage.database.database import Database, _engine
from storage.database.migrating import SCRIPTS
from storage.database.tables import EPOCH
from storage.errors import Busy, LedgerAlarm, UnusableDatabase
from storage.journal.facts import FactKind, canonical
from storage.journal.layouts import EMPTY_HEAD, EntryKind, entry_digest, fact_digest, next_head
from storage.ledger import charging
from storage.ledger.ledger import Replay, Reservation, Reserve
from storage.people.person_facts import user_state
from storage.people.users import Users
from storage.records.data_folder import Files
from tests.support.blocking import BlockingLedger
from tests.support.tampering import tampering
from tests.support.world import allowance, contents, loss

NEW = {
    "entry": {"bound", "d_rho_f", "d_unpriced", "d_gaussian"},
    "settlement": {"digest"},
    "dataset": {"nodes_folder", "revision", "person_key", "source"},
    "dataset_version": {"folder", "manifest_digest"},
    "users": {"revision"},
    "api_key": {"revision"},
    "budget_account": {
        *("epoch", "lim_rho_f", "charged_rho_f", "lim_delta_c", "charged_unpriced"),
        *("lim_gaussian", "until_us"),
    },
    "query": {"form", "salt", "rho_f", "unpriced"},
}
DAY = 86_400 * 1_000_000
EPS = 10**8
ANSWERED, RUNNING, GIVEN_BACK = UUID(int=1), UUID(int=2), UUID(int=3)


def config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    return config


def first_schema(engine: Engine) -> None:
    with engine.execution_options(writing=True).begin() as connection:
        command.upgrade(config(connection), "0001")
        for name, rows in _rows().items():
            old = [c for c in tables.metadata.tables[name].c if c.name not in NEW.get(name, set())]
            target = table(name, *(column(c.name, c.type) for c in old))
            for row in rows:
                connection.execute(insert(target).values(row))


def _rows() -> Mapping[str, list[dict[str, Any]]]:
    """What the first version wrote: one dataset, one analyst, three queries."""
    entries: list[dict[str, Any]] = []
    heads = {1: EMPTY_HEAD, 2: EMPTY_HEAD}
    seqs = {1: 0, 2: 0}

    def add(account: int, kind: EntryKind, query: UUID | None, amount: int, at_us: int) -> None:
        id = None if query is None else query.bytes
        digest = entry_digest(account, kind, id, 2, (amount, 0), at_us)
        heads[account], seqs[account] = next_head(heads[account], digest), seqs[account] + 1
        entries.append(
            {
                "account_id": account,
                "seq": seqs[account],
                "kind": int(kind),
                "query_id": query,
                "actor": 2,
                "d_eps_n": amount,
                "d_delta_a": 0,
                "at_us": at_us,
                "digest": digest,
                "head": heads[account],
            }
        )

    for account in (1, 2):
        add(account, EntryKind.GENESIS, None, 10 * EPS, DAY)
        for number, query in enumerate((ANSWERED, RUNNING, GIVEN_BACK), start=2):
            add(account, EntryKind.CHARGE, query, EPS, number * DAY)
        add(account, EntryKind.RELEASE, GIVEN_BACK, -EPS, 9 * DAY)
    hash = sha256(b"an answer").digest()

    def query(id: UUID, state: int, at_us: int, **more: Any) -> dict[str, Any]:
        return {
            "id": id,
            "analyst_id": 3,
            "dataset_id": 1,
            "dataset_version": 1,
            "idem_key": f"key {id.int}",
            "body_hash": sha256(b"body").digest(),
            "request": b'{"kind":"top_k"}',
            "eps_n": EPS,
            "delta_a": 0,
            "state": state,
            "attempt": 1,
            "attempt_us": at_us,
            "lease_until": at_us + 1,
            "created_us": at_us,
            **more,
        }

    def account(id: int, rank: int, analyst: int) -> dict[str, Any]:
        return {
            "id": id,
            "rank": rank,
            "dataset_id": 1,
            "analyst_id": analyst,
            "lim_eps_n": 10 * EPS,
            "charged_eps_n": 2 * EPS,
            "lim_delta_a": 0,
            "charged_delta_a": 0,
            "frozen": 0,
            "seq": seqs[id],
            "head": heads[id],
        }

    settled = {"settled_us": 6 * DAY, "release_us": 7 * DAY}
    return {
        "users": [
            {"id": number, "name": name, "disabled": 0, "created_us": 0}
            for number, name in enumerate(("admin", "olga", "ana"), start=1)
        ],
        "user_role": [
            {"user_id": number, "role": role}
            for number, role in enumerate(("admin", "owner", "analyst"), start=1)
        ],
        "dataset": [
            {
                "id": 1,
                "name": "d",
                "owner_id": 2,
                "description": "{}",
                "domain": None,
                "neighbouring": "edge",
                "records_per_person": 1,
                "fixed_rows": None,
                "version": 1,
                "versions": 1,
                "created_us": 0,
            }
        ],
        "dataset_version": [{"dataset_id": 1, "version": 1, "published_us": 0, "removed_us": None}],
        "budget_account": [account(1, 0, 3), account(2, 2, 0)],
        "query": [
            query(
                ANSWERED,
                1,
                2 * DAY,
                answer=b"an answer",
                answer_hash=hash,
                answer_status=201,
                **settled,
            ),
            query(RUNNING, 0, 3 * DAY),
            query(GIVEN_BACK, 2, 4 * DAY, settled_us=9 * DAY, release_us=9 * DAY),
        ],
        "entry": entries,
        "settlement": [{"query_id": ANSWERED, "attempt": 1, "answer_hash": hash, "at_us": 6 * DAY}],
        "audit": [
            {"at_us": 0, "actor_id": 1, "action": "user.create", "subject": "ana", "detail": "{}"}
        ],
    }


@pytest.fixture
def upgraded(empty_url: str, tmp_path: Path) -> Any:
    engine = _engine(empty_url)
    first_schema(engine)
    if engine.dialect.name == "postgresql":
        # The test inserted rows with ids of its own. On PostgreSQL the sequences that give ids are
        # therefore moved past them.
        with engine.begin() as connection:
            for name in ("users", "dataset", "budget_account"):
                connection.execute(
                    text(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), 100)")
                )
    engine.dispose()
    database = Database.open(empty_url, tmp_path)
    yield database
    database.close()


def test_rows_of_the_first_schema_are_kept_and_verified(upgraded: Database) -> None:
    result = verify(upgraded)
    assert (result.first_bad, *result.extent[:2]) == (None, 2, 10)
    with upgraded.read() as connection:
        for name, rows in _rows().items():
            stored: Table = tables.metadata.tables[name]
            rest = [row._asdict() for row in connection.execute(select(stored))]
            key = [c.name for c in stored.primary_key]
            order = repr if name == "audit" else (lambda row, key=key: [str(row[k]) for k in key])
            for old, new in zip(sorted(rows, key=order), sorted(rest, key=order), strict=True):
                assert {k: v for k, v in new.items() if k in old} == old
                added = {name: new[name] for name in NEW.get(stored.name, set())}
                assert added.pop("revision", 0) == 0
                assert (added.pop("epoch", EPOCH), added.pop("form", 1)) == (EPOCH, 1)
                assert (added.pop("salt", None) is None) == (new.get("state") != 0)
                assert added.pop("until_us", None) is None
                assert set(added.values()) <= ({0} if name == "budget_account" else {None})


def test_the_ledger_goes_on(upgraded: Database, tmp_path: Path) -> None:
    ledger = BlockingLedger(upgraded)

    def ask(key: str, id: int) -> Any:
        body = sha256(b"body").digest()
        return ledger.reserve(Reserve(UUID(int=id), 3, 1, key, body, loss("0.1"), b"{}"))

    replay = ask("key 1", 11)
    assert isinstance(replay, Replay)
    assert replay.body == b"an answer"
    second = ask("key 2", 12)
    assert isinstance(second, Reservation)
    assert (second.query_id, second.attempt) == (RUNNING, 2)
    assert ledger.settle(second, status=201, body=b"late", release_us=0)
    fresh = ask("key 9", 13)
    assert isinstance(fresh, Reservation)
    users = Users(upgraded)
    ana, admin = users.find("ana"), users.find("admin")
    assert ana is not None
    assert admin is not None
    account = ledger.grant(None, ana.id, allowance(1), actor_id=admin.id)
    assert account.account.charged == loss("0.3")
    dataset = Datasets(upgraded, Files(tmp_path / "data")).find("d")
    assert dataset is not None
    ledger.grant(dataset.id, ana.id, allowance(2), actor_id=admin.id)
    assert verify(upgraded).valid


def test_an_old_account_is_charged_the_rho_of_what_it_bore(upgraded: Database) -> None:
    """One query is answered, one runs, and one was given back before accounts counted in ρ."""
    ledger, promise = BlockingLedger(upgraded), Limit.of(loss(1), 10**12)
    rho = 2 * pure_femto(EPS)
    for account in (
        ledger.grant(1, 3, promise, actor_id=2),
        ledger.limit_cap(1, promise, actor_id=2),
    ):
        assert account.account.charged == PrivacyLoss(2 * EPS, 0, rho)
        assert account.account.limit == promise
    assert verify(upgraded).valid
    body = sha256(b"body").digest()
    charge = PrivacyLoss(EPS, 0, pure_femto(EPS))
    assert isinstance(
        ledger.reserve(Reserve(UUID(int=13), 3, 1, "key 9", body, charge, b"{}")), Reservation
    )
    assert ledger.account(1, 3).account.charged == PrivacyLoss(3 * EPS, 0, rho * 3 // 2)
    assert verify(upgraded).valid


def test_old_rows_are_verified_by_what_their_digests_cover(upgraded: Database) -> None:
    url = upgraded.engine.url.render_as_string(hide_password=False)
    e, q = tables.entry, tables.query
    with tampering(url) as run:
        for changed, back in (
            (e.update().values(actor=9), e.update().values(actor=2)),
            (
                q.update().where(q.c.state == 1).values(answer=b"x"),
                q.update().where(q.c.state == 1).values(answer=b"an answer"),
            ),
            (e.update().values(bound=bytes(32)), e.update().values(bound=None)),
        ):
            run(changed)
            assert not verify(upgraded).valid
            run(back)
            assert verify(upgraded).valid


@pytest.mark.parametrize("target", ["base", "0001", "-1"])
def test_a_downgrade_is_refused_with_a_reason(empty_url: str, tmp_path: Path, target: str) -> None:
    Database.open(empty_url, tmp_path).close()
    engine = _engine(empty_url)
    with (
        pytest.raises(UnusableDatabase, match=r"never downgraded: .*restore a backup"),
        engine.execution_options(writing=True).begin() as connection,
    ):
        command.downgrade(config(connection), target)
    engine.dispose()
    again = Database.open(empty_url, tmp_path)
    assert again.ready()
    again.close()


def test_what_was_there_is_adopted(upgraded: Database) -> None:
    """One digest per table that had rows, which anyone with the rows can compute again."""
    with upgraded.read() as connection:
        stored = connection.execute(select(tables.journal).order_by(tables.journal.c.seq)).all()
        (stream,) = connection.execute(select(tables.journal_stream)).all()
        head = EMPTY_HEAD
        for seq, row in enumerate(stored, start=1):
            fields = (row.stream, row.at_us, row.kind, row.actor, row.subject, row.fact.encode())
            head = next_head(head, fact_digest(*fields))
            assert (row.seq, row.head) == (seq, head)
            assert canonical(json.loads(row.fact)) == row.fact
        assert (stream.seq, stream.head) == (len(stored), head)
        adopted = [json.loads(row.fact) for row in stored if row.kind == FactKind.ADOPTED]
        assert {fact["table"] for fact in adopted} == set(_rows()) - {"budget_account", "entry"}
        for fact in adopted:
            columns, key = COLUMNS[fact["table"]], ", ".join(KEYS[fact["table"]])
            ended = " WHERE state <> 0" if fact["table"] == "query" else ""
            rows = connection.execute(
                text(f"SELECT {', '.join(columns)} FROM {fact['table']}{ended} ORDER BY {key}")
            )
            count, digest = digest_of_rows(bytes.fromhex(fact["salt"]), rows)
            assert (fact["rows"], fact["digest"]) == (count, digest.hex())
        users = {
            fact["state"]["id"]: fact["state"]
            for row in stored
            if row.kind == FactKind.UNTOLD_USER and (fact := json.loads(row.fact))
        }
        for user in connection.execute(select(tables.users)):
            assert users[user.id] == user_state(connection, user)


def test_an_old_row_that_was_reset_is_never_drawn_again(upgraded: Database) -> None:
    """Queries that ended before the journal have their settlement in its place."""
    q = tables.query
    reset = {"state": 0, "answer": None, "answer_hash": None, "answer_status": None}
    with tampering(upgraded.engine.url.render_as_string(hide_password=False)) as run:
        ended = {"settled_us": None, "release_us": None, "lease_until": 0}
        run(q.update().where(q.c.id == ANSWERED).values(**reset, **ended))
    ledger = BlockingLedger(upgraded)
    body = sha256(b"body").digest()
    with pytest.raises(LedgerAlarm):
        ledger.reserve(Reserve(UUID(int=11), 3, 1, "key 1", body, loss("0.1"), b"{}"))


@pytest.mark.parametrize(
    "statement",
    [
        # The statements by which a service with schema 0007 charges a query, settles it, and writes
        # a line of its audit trail.
        "INSERT INTO entry (account_id, seq, kind, query_id, actor, d_eps_n, d_delta_a, at_us, "
        "digest, head, subject) SELECT account_id, seq + 100, kind, NULL, actor, d_eps_n, "
        "d_delta_a, at_us, digest, head, digest FROM entry",
        "INSERT INTO settlement (query_id, attempt, answer_hash, at_us, digest) "
        "SELECT id, 1, body_hash, 0, body_hash FROM query WHERE state = 0",
        "INSERT INTO audit (at_us, actor_id, action, subject, detail) VALUES (0, 1, 'x', '', '{}')",
    ],
)
def test_a_process_of_an_older_version_writes_nothing(upgraded: Database, statement: str) -> None:
    before = contents(upgraded)
    with pytest.raises((DBAPIError, LedgerAlarm)):
        upgraded.write(lambda connection: connection.execute(text(statement)))
    assert contents(upgraded) == before


def test_a_process_whose_epoch_has_passed_cannot_charge(upgraded: Database) -> None:
    """A later migration raises the epoch of the accounts."""
    raised = tables.budget_account.update().values(epoch=EPOCH + 1)
    upgraded.write(lambda connection: connection.execute(raised))
    ledger = BlockingLedger(upgraded)
    before = contents(upgraded)
    body = sha256(b"body").digest()
    with pytest.raises(Busy, match="later version"):
        ledger.reserve(Reserve(UUID(int=11), 3, 1, "new", body, loss("0.1"), b"{}"))
    with pytest.raises(Busy):
        ledger.grant(1, 3, allowance(5), actor_id=1)
    assert contents(upgraded) == before


def test_the_guard_itself_names_the_epoch(
    upgraded: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the epoch rises after a process has read the account."""
    raised = tables.budget_account.update().values(epoch=EPOCH + 1)
    upgraded.write(lambda connection: connection.execute(raised))
    # A migration raises the epoch of accounts, so that processes of older releases can no longer
    # charge. This patch simulates a process that read the account before its epoch rose.
    monkeypatch.setattr(charging, "EPOCH", EPOCH + 1)
    before = contents(upgraded)
    body = sha256(b"body").digest()
    with pytest.raises((Busy, LedgerAlarm)):
        BlockingLedger(upgraded).reserve(
            Reserve(UUID(int=11), 3, 1, "new", body, loss("0.1"), b"{}")
        )
    assert contents(upgraded) == before
