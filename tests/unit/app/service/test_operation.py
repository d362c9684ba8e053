"""Health, metrics, logs, settings, start and stop."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import tomllib
import urllib.request
from pathlib import Path

import pytest
import uvicorn.importer
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr
from typer.testing import CliRunner

from app import __version__
from app.cli import cli, main
from app.config.settings import Settings
from app.contract.problems import BY_SLUG
from app.demo.service import free_port
from app.main import create_app
from app.service import priority
from app.telemetry import logs
from tests.support.patience import PATIENCE, until
from tests.support.service import EDGES, Service

ROOT = Path(__file__).parents[4]


def test_health(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    assert client.get("/version").json()["version"] == __version__


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["version"] == __version__


def test_not_ready_when_the_database_is_gone(service: Service) -> None:
    service.client.app.state.services.database.close()  # type: ignore[attr-defined]
    services = service.client.app.state.services  # type: ignore[attr-defined]
    services.database.ready = lambda: False
    reply = service.client.get("/readyz")
    assert (reply.status_code, reply.json()) == (503, {"status": "not_ready"})
    assert service.client.get("/healthz").status_code == 200


def test_not_ready_when_the_disk_of_the_ledger_is_full(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger may lie on another disk than records and heads."""
    ledger = tmp_path / "ledger"
    elsewhere = settings.model_copy(update={"database_url": f"sqlite:///{ledger}/purse.db"})
    with TestClient(create_app(elsewhere)) as client:
        assert client.get("/readyz").status_code == 200
        monkeypatch.setattr("app.usecases.health.has_room", lambda folder: folder != ledger)
        assert client.get("/readyz").status_code == 503


def test_metrics_are_the_operators(settings: Settings, client: TestClient) -> None:
    absent = client.get("/metrics", headers={"Authorization": "Bearer x"})
    assert (absent.status_code, absent.json()["type"]) == (404, "/problems/not-found")
    with_token = settings.model_copy(update={"metrics_token": SecretStr("let me see")})
    with TestClient(create_app(with_token)) as other:
        for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "let me see"}):
            assert other.get("/metrics", headers=header).status_code == 404
        other.get("/healthz")
        reply = other.get("/metrics", headers={"Authorization": "Bearer let me see"})
        assert reply.status_code == 200
        assert 'route="/healthz",status="200"' in reply.text
        assert f'privypurse_build_info{{version="{__version__}"}} 1.0' in reply.text


def test_metrics_and_logs_name_no_dataset_and_time_no_upload(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    with_token = settings.model_copy(update={"metrics_token": SecretStr("t")})
    with TestClient(create_app(with_token)) as client:
        service = Service(client, with_token)
        service.user("olga-the-owner", "owner")
        name = service.dataset("olga-the-owner", name="secret-name")
        service("olga-the-owner", "GET", f"/v1/datasets/{name}?cursor=hidden-cursor")
        service.upload("olga-the-owner", name, EDGES + b"4,4\n")
        metrics = client.get("/metrics", headers={"Authorization": "Bearer t"}).text
    output = capsys.readouterr()
    lines = output.out + output.err
    for text in (metrics, lines):
        for word in ("secret-name", "olga", "hidden-cursor", service.keys["root"]):
            assert word not in text
    assert not re.search(r"(seconds|duration)\S*records", metrics)
    assert "process_" not in metrics
    fields = {key for line in output.err.splitlines() for key in json.loads(line)}
    assert fields <= logs.ALLOWED


def test_a_library_in_distress_does_not_log_values(capsys: pytest.CaptureFixture[str]) -> None:
    import logging

    logs.configure()
    try:
        raise ValueError("secret record")
    except ValueError:
        logging.getLogger("somelibrary").exception("cannot read %s", "secret record")
    line = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert line["event"] == "cannot read %s"
    assert line["error"] == "ValueError"
    assert "secret" not in json.dumps(line)


def test_servers_find_the_application_by_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("PURSE_DATA", str(tmp_path))
    application = uvicorn.importer.import_from_string("app.main:app")
    with TestClient(application) as client:
        assert client.get("/readyz").status_code == 200
    assert (tmp_path / "bootstrap-admin.key").exists()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PURSE_RELEASE_INTERVAL", "0.25")
    monkeypatch.setenv("PURSE_DATA", "elsewhere")
    monkeypatch.setenv("DATABASE_URL", "postgresql+psycopg://db/purse")
    settings = Settings()
    assert settings.release_interval == 0.25
    assert settings.url() == "postgresql+psycopg://db/purse"
    monkeypatch.delenv("DATABASE_URL")
    assert Settings().url() == f"sqlite:///{Path('elsewhere/privypurse.db').absolute()}"


def test_every_problem_is_in_the_documentation() -> None:
    text = (ROOT / "docs" / "problems.md").read_text()
    assert {f"### {slug}" for slug in BY_SLUG} <= set(text.splitlines())


@pytest.mark.long
def test_the_command_serves_says_where_the_key_is_and_stops_cleanly(tmp_path: Path) -> None:
    port, data = free_port(), tmp_path / "data"
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--data", str(data)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PURSE_", "DATABASE"))}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        url = f"http://127.0.0.1:{port}/healthz"

        def answers() -> bool:
            try:
                with urllib.request.urlopen(url, timeout=PATIENCE) as reply:
                    assert reply.status == 200
                    assert "server" not in {name.lower() for name in reply.headers}
                return True
            except OSError:
                assert process.poll() is None
                return False

        until(answers)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0
    key_file = data / "bootstrap-admin.key"
    assert str(key_file) in out
    assert key_file.read_text().strip() not in out + err
    assert all(set(json.loads(line)) <= logs.ALLOWED for line in err.splitlines())


def test_a_free_port_is_given_once_and_a_server_may_have_it() -> None:
    """A concurrent search with the same random draws receives another port."""
    state = random.getstate()
    first = free_port()
    random.setstate(state)
    second = free_port()
    assert first != second
    for port in (first, second):
        socket.create_server(("127.0.0.1", port)).close()


def test_a_data_folder_that_cannot_be_is_named_in_one_line(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file", "utf-8")
    result = CliRunner().invoke(cli, ["serve", "--data", str(taken / "data")])
    assert result.exit_code == 1
    reason = f"the data folder {taken / 'data'} cannot be used: "
    assert result.stderr.startswith(reason)
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("PURSE_PORT", "planted", "PURSE_PORT: "),
        ("PURSE_RATE_LIMIT", "planted", "PURSE_RATE_LIMIT: a number and a window"),
        ("PURSE_OIDC_ISSUER", "https://planted", "an issuer and an audience go together"),
        ("PURSE_OIDC_ROLES", "planted", "oidc_roles"),
    ],
)
def test_a_wrong_setting_is_one_line_without_its_value(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variable: str,
    value: str,
    named: str,
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr("sys.argv", ["privypurse", "serve"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert named in said
    assert "planted" not in said
    assert len(said.splitlines()) == 1


def test_an_empty_rate_limit_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PURSE_RATE_LIMIT", "")
    assert Settings().rate_limit is None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_work_goes_before_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, application: FastAPI
) -> None:
    """Late work would reveal that it took long, and a late event loop reveals nothing."""
    monkeypatch.setattr(priority, "BEHIND", 5)

    def nice(thread: int | None) -> int:
        assert thread is not None
        return os.getpriority(os.PRIO_PROCESS, thread)

    with TestClient(application) as client:
        assert client.portal is not None
        loop = nice(client.portal.call(threading.get_native_id))
        here = nice(threading.get_native_id())
        jobs = {nice(one.native_id) for one in threading.enumerate() if one.name.startswith("job_")}
    assert jobs == {here}
    assert loop == min(here + 5, 19)
