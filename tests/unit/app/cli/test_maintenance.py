"""The operator's commands on the folder of a service, while it runs or after it stopped."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from app.cli import cli
from app.config.settings import Settings
from app.main import create_app
from app.telemetry import logs
from tests.architecture.imports import ROOT
from tests.support.patience import until
from tests.support.service import Service
from tests.unit.app.routes.test_ledger import QUERY, ask, tamper

RUN = CliRunner()


def run(*arguments: object) -> tuple[int, str, str]:
    result = RUN.invoke(cli, [str(argument) for argument in arguments], env={"DATABASE_URL": ""})
    return result.exit_code, result.stdout, result.stderr


def logged_as(line: str) -> str:
    """The log line that the page about restoring quotes."""
    page = " ".join((ROOT / "docs/backup.md").read_text("utf-8").split())
    match = re.search(f"`({line})`", page)
    assert match is not None
    return match[1]


@pytest.fixture
def shop(people: Service) -> Service:
    people.dataset("olga")
    people.grant("olga", "triangle", "ana", "1")
    return people


def stop(service: Service) -> None:
    service.client.__exit__(None, None, None)


def start_again(service: Service) -> None:
    service.client.__enter__()


def test_verify_says_valid_or_names_the_row(shop: Service) -> None:
    data = shop.settings.data
    ask(shop, "triangle")
    status, out, _ = run("verify", "--data", data)
    assert status == 0
    assert re.fullmatch(r"2 accounts, 4 entries, head [0-9a-f]{64}\nvalid\n", out)
    tamper(shop, "UPDATE query SET answer = x'00'")
    status, _, err = run("verify", "--data", data)
    assert status == 1
    assert "the ledger is not valid: query: query " in err


def test_verify_does_not_call_a_ledger_invalid_that_it_cannot_compare(
    shop: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status 1 is for a bad row alone."""
    data = shop.settings.data
    stop(shop)
    heads = data / "heads.log"
    heads.unlink()
    heads.mkdir()
    status, _, err = run("verify", "--data", data)
    assert (status, err) == (2, f"{heads} cannot be used: Is a directory\n")
    heads.rmdir()

    failure = sqlite3.OperationalError("a reader")
    failure.sqlite_errorcode = sqlite3.SQLITE_IOERR

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr("storage.assurance.verify_chains.streamed", fail)
    status, _, err = run("verify", "--data", data)
    assert (status, err) == (2, "the database cannot answer now\n")
    monkeypatch.undo()
    start_again(shop)


def test_verify_compares_prepared_arrays_when_it_is_told_to(shop: Service) -> None:
    """One flipped byte of an array could move a sum by any amount."""
    data = shop.settings.data
    status, out, _ = run("verify", "--arrays", "--data", data)
    assert status == 0
    assert re.search(r"1 versions of prepared arrays, [1-9][0-9]* bytes, [0-9]+ bytes per", out)
    assert out.endswith("valid\n")
    folder = shop.client.app.state.services.files.version_folder(1, 1)  # type: ignore[attr-defined]
    files = (path for path in folder.iterdir() if path.suffix != ".json")
    array = max(files, key=lambda path: path.stat().st_size)
    content = array.read_bytes()
    for damaged in (bytes([content[0] ^ 1]) + content[1:], content[:-1], None):
        array.unlink()
        if damaged is not None:
            array.write_bytes(damaged)
        assert run("verify", "--data", data)[0] == 0
        status, _, err = run("verify", "--arrays", "--data", data)
        assert status == 1
        assert "dataset_version: dataset 1, version 1: its prepared arrays" in err
        array.write_bytes(content)
    assert run("verify", "--arrays", "--data", data)[0] == 0
    # Danger: somebody could replace the arrays, their manifest and its digest in the database. The
    # journal still states the digest of the first manifest.
    tamper(shop, "UPDATE dataset_version SET manifest_digest = zeroblob(32)")
    assert run("verify", "--arrays", "--data", data)[0] == 1


def test_verify_finds_what_was_forgotten(shop: Service, tmp_path: Path) -> None:
    data = shop.settings.data
    stop(shop)
    shutil.copytree(data, tmp_path / "before")
    start_again(shop)
    ask(shop, "triangle")
    stop(shop)
    heads = data / "heads.log"
    assert run("verify", "--data", tmp_path / "before")[0] == 0
    status, _, err = run("verify", "--data", tmp_path / "before", "--heads", heads)
    assert status == 1
    assert "was published and is missing" in err
    assert run("verify", "--data", data, "--heads", tmp_path / "none")[0] == 1
    start_again(shop)


def test_a_receipt_names_its_entry(shop: Service) -> None:
    data = shop.settings.data
    reply = ask(shop, "triangle").json()
    status, out, _ = run("receipt", reply["receipt"], "--data", data)
    assert status == 0
    assert f"charge of epsilon 0.1, delta 0, query {reply['id']}" in out
    assert "analyst ana, dataset triangle" in out
    assert out.endswith("account 2, entry 2\nvalid\n")
    assert run("receipt", "00" * 32, "--data", data)[0] == 1
    assert run("receipt", "nonsense", "--data", data)[0] == 1
    tamper(shop, "UPDATE entry SET at_us = at_us + 1 WHERE account_id = 2 AND seq = 1")
    status, _, err = run("receipt", reply["receipt"], "--data", data)
    assert status == 1
    assert "account 2, entry 1" in err


def test_a_restored_service_is_frozen_until_the_operator_accepts(
    shop: Service, settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = settings.data
    shop.dataset("olga", name="quiet")
    assert shop("ada", "PUT", "/v1/users/ana/budget", json={"epsilon": "5"}).is_success
    query = ask(shop, "triangle", epsilon="0.2").json()
    status, out, _ = run("backup", tmp_path / "backup", "--data", data)
    assert status == 0
    assert "starts frozen" in out
    assert run("backup", tmp_path / "backup", "--data", data)[0] == 1
    ask(shop, "triangle", epsilon="0.5")
    stop(shop)

    restored = tmp_path / "restored"
    shutil.copytree(tmp_path / "backup", restored)
    status, _, err = run("accept-rollback", "--data", restored)
    assert status == 1
    assert "--heads-lost" in err
    shutil.copyfile(data / "heads.log", restored / "heads.log")
    assert "frozen" not in capsys.readouterr().err
    app: FastAPI = create_app(settings.model_copy(update={"data": restored}))
    with TestClient(app, raise_server_exceptions=False) as client:
        again = Service.__new__(Service)
        again.client, again.settings, again.keys = client, settings, shop.keys
        logged = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
        [said] = [line for line in logged if line["level"] != "info"]
        assert (said["level"], said["event"]) == ("error", logged_as(r"accounts are frozen: [^`]*"))
        frozen = ask(again, "triangle")
        assert (frozen.status_code, frozen.json()["type"]) == (503, "/problems/frozen")
        # Answers to queries from before the restore are still served.
        entry = again("ana", "GET", f"/v1/queries/{query['id']}").json()
        assert entry["answer"] == query["answer"]
        status, out, _ = run("accept-rollback", "--data", restored)
        assert status == 0
        # Four accounts were frozen. Three of them get the charge again that the backup lacks. The
        # fourth, the cap of the dataset quiet, had no charge.
        again_charged = "charged epsilon 0.5, delta 0 again"
        assert out.splitlines() == [
            f"ana, dataset triangle: {again_charged}",
            f"ana, over all datasets: {again_charged}",
            f"cap of triangle: {again_charged}",
            "4 accounts take charges again",
        ]
        (account,) = again("ana", "GET", "/v1/budgets").json()["items"]
        assert account["spent"]["epsilon"] == "0.7"
        assert ask(again, "triangle", epsilon="0.3").status_code == 201
        assert ask(again, "triangle", epsilon="0.1").status_code == 403
        assert again("otto", "GET", "/v1/ledger/verification").json()["valid"]
        actions = [line["action"] for line in again("otto", "GET", "/v1/audit").json()["items"]]
        # The backup has no signing key for certificates, so the restored service made another one.
        actions = [action for action in actions if action != "service.certificate_key"]
        assert actions[:2] == ["ledger.accept_rollback", "ledger.freeze"]
        entries = again("otto", "GET", "/v1/ledger").json()["items"]
        assert {e["actor"] for e in entries if e["kind"] == "unfreeze"} == {"(operator)"}
    assert run("accept-rollback", "--data", restored)[1] == "nothing is frozen\n"
    start_again(shop)


def test_without_later_heads_a_dataset_answers_no_more(
    shop: Service, settings: Settings, tmp_path: Path
) -> None:
    ask(shop, "triangle", epsilon="0.2")
    restored = tmp_path / "restored"
    assert run("backup", restored, "--data", settings.data)[0] == 0
    status, _, err = run("accept-rollback", "--data", restored)
    assert status == 1
    assert "none of the frozen datasets answers any more" in err
    status, out, _ = run("accept-rollback", "--heads-lost", "--data", restored)
    assert status == 0
    assert "charged epsilon 9.8, delta 0 again" in out
    assert "registered anew" in out
    stop(shop)
    app: FastAPI = create_app(settings.model_copy(update={"data": restored}))
    with TestClient(app, raise_server_exceptions=False) as client:
        again = Service.__new__(Service)
        again.client, again.settings, again.keys = client, settings, shop.keys
        assert again.grant("olga", "triangle", "ana", "4").status_code == 200
        refused = ask(again, "triangle")
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/cap-exhausted")
        exposure = again("olga", "GET", "/v1/datasets/triangle/budgets").json()["exposure"]
        assert exposure["spent"]["epsilon"] == exposure["at_most"]["epsilon"] == "10"
    start_again(shop)


def test_a_folder_without_a_ledger_is_not_a_valid_one(tmp_path: Path) -> None:
    for command in (["verify"], ["receipt", "00" * 32], ["backup", tmp_path / "b"]):
        status, _, err = run(*command, "--data", tmp_path / "nothing")
        assert status == 2
        assert "no ledger" in err
    assert not (tmp_path / "nothing").exists()


def test_migrate_makes_a_ledger_and_refuses_roles_on_sqlite(tmp_path: Path) -> None:
    assert run("migrate", "--data", tmp_path / "new")[0] == 0
    assert run("verify", "--data", tmp_path / "new")[0] == 0
    status, _, err = run("migrate", "--data", tmp_path / "new", "--service-role", "x")
    assert status == 2
    assert "PostgreSQL" in err


@pytest.mark.parametrize("content", [None, b""])
def test_a_service_without_heads_takes_no_charge_until_they_are_adopted(
    shop: Service, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    heads = shop.settings.heads_file()
    sent = {
        "json": {"dataset": "triangle", "epsilon": "0.1", "query": QUERY},
        "headers": {"Idempotency-Key": "before"},
    }
    paid = shop("ana", "POST", "/v1/queries", **sent)
    stop(shop)
    heads.unlink()
    if content is not None:
        heads.write_bytes(content)
    logs.configure()  # Logs go to the stream that this test captures.
    start_again(shop)
    assert "no published heads are found" in capsys.readouterr().err
    # Until the version of the dataset is open, a query is refused as busy.
    until(lambda: ask(shop, "triangle").json()["type"] != "/problems/busy")
    refused = ask(shop, "triangle")
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/frozen")
    assert shop.client.get("/readyz").status_code == 503
    assert shop.client.get("/healthz").status_code == 200
    # A retry of the paid query is still answered. Refusals neither charge an account nor write to
    # the file of heads.
    assert shop("ana", "POST", "/v1/queries", **sent).content == paid.content
    (account,) = shop("ana", "GET", "/v1/budgets").json()["items"]
    assert account["spent"]["epsilon"] == "0.1"
    assert (heads.read_bytes() if heads.exists() else None) == content

    status, out, err = run("adopt-heads", "--data", shop.settings.data)
    assert (status, out) == (0, "the heads of 2 accounts are adopted; nothing is charged\n")
    assert json.loads(err)["level"] == "critical"
    assert run("adopt-heads", "--data", shop.settings.data)[0] == 1
    shop.client.app.state.services.publisher.look()  # type: ignore[attr-defined]
    assert shop.client.get("/readyz").status_code == 200
    assert ask(shop, "triangle").status_code == 201
    entries = shop("otto", "GET", "/v1/ledger").json()["items"]
    assert {entry["kind"] for entry in entries} == {"genesis", "charge"}
    actions = [line["action"] for line in shop("otto", "GET", "/v1/audit").json()["items"]]
    assert actions[0] == "ledger.adopt_heads"


def test_an_admin_without_a_key_gets_a_new_one(shop: Service, tmp_path: Path) -> None:
    data, file = shop.settings.data, tmp_path / "new.key"
    for name, reason in (("olga", "olga is no enabled admin"), ("nobody", "nobody is no enabled")):
        status, _, err = run("admin-key", name, file, "--data", data)
        assert (status, reason in err, file.exists()) == (1, True, False)
    status, out, _ = run("admin-key", "ada", file, "--data", data)
    assert (status, out) == (0, f"{file} holds a new key of ada\n")
    assert file.stat().st_mode & 0o77 == 0
    shop.keys["new"] = file.read_text()
    assert shop("new", "GET", "/v1/me").json()["name"] == "ada"
    assert shop("otto", "GET", "/v1/audit").json()["items"][0]["action"] == "key.issue"
    # An existing file is not overwritten by the new key, and no key is issued.
    keys = shop("ada", "GET", "/v1/users/ada/keys").json()
    assert run("admin-key", "ada", file, "--data", data)[0] == 1
    assert (file.read_text(), shop("ada", "GET", "/v1/users/ada/keys").json()) == (
        shop.keys["new"],
        keys,
    )
    # No key is issued either if the file for it cannot be written.
    status, _, err = run("admin-key", "ada", file / "within", "--data", data)
    assert (status, "cannot be written" in err) == (1, True)
    assert shop("ada", "GET", "/v1/users/ada/keys").json() == keys
    assert run("verify", "--data", data)[0] == 0


def test_heads_of_a_ledger_that_is_not_valid_are_not_adopted(shop: Service) -> None:
    stop(shop)
    shop.settings.heads_file().unlink()
    tamper(shop, "UPDATE budget_account SET charged_eps_n = 5")
    status, _, err = run("adopt-heads", "--data", shop.settings.data)
    assert status == 1
    assert "the ledger is not valid" in err
    assert not shop.settings.heads_file().exists()
    start_again(shop)


def test_each_published_line_reaches_the_command(settings: Settings, tmp_path: Path) -> None:
    received = tmp_path / "received"
    command = f"sh -c 'cat >> {received}'"
    settings = settings.model_copy(update={"heads_command": command, "heads_interval": 3600})
    with TestClient(create_app(settings)) as client:
        service = Service(client, settings)
        service.user("olga", "owner")
        service.dataset("olga")
    published = settings.heads_file().read_bytes().splitlines()
    assert received.read_bytes().splitlines() == published[1:]
    assert b'"account":1' in received.read_bytes()
