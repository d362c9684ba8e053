"""Secrets from a folder of files: what they set, what overrides them, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError
from sqlalchemy import make_url

from app.config.settings import Settings
from app.main import create_app

ADDRESS = "postgresql+psycopg://purse@database/purse"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of secrets that the environment names."""
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("PURSE_SECRETS", str(secrets))
    return secrets


def test_the_token_of_metrics_is_read_from_its_file(folder: Path, tmp_path: Path) -> None:
    (folder / "purse_metrics_token").write_text("let me see\n")
    with TestClient(create_app(Settings(data=tmp_path / "data"))) as client:
        reply = client.get("/metrics", headers={"Authorization": "Bearer let me see"})
        assert reply.status_code == 200
        assert client.get("/metrics", headers={"Authorization": "Bearer x"}).status_code == 404


def test_an_empty_token_is_none(folder: Path, tmp_path: Path) -> None:
    (folder / "purse_metrics_token").write_text("\n")
    settings = Settings(data=tmp_path / "data")
    assert settings.metrics_token is None
    with TestClient(create_app(settings)) as client:
        for sent in ("Bearer ", "Bearer", "Bearer None"):
            assert client.get("/metrics", headers={"Authorization": sent}).status_code == 404


@pytest.mark.parametrize("password", ["plain", "p@ss:w/rd?#%41 +é", "a" * 300])
def test_the_password_of_the_database_is_put_into_its_address(
    folder: Path, monkeypatch: pytest.MonkeyPatch, password: str
) -> None:
    monkeypatch.setenv("PURSE_DATABASE_URL", ADDRESS)
    (folder / "purse_database_password").write_text(password, "utf-8")
    settings = Settings()
    url = make_url(settings.url())
    assert (url.username, url.password, url.host) == ("purse", password, "database")
    assert password not in repr(settings)


def test_a_whole_address_may_be_a_secret(folder: Path) -> None:
    (folder / "purse_database_url").write_text(ADDRESS)
    assert Settings().url() == ADDRESS


def test_the_environment_wins_and_a_caller_over_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "purse_port").write_text("1")
    assert Settings().port == 1
    monkeypatch.setenv("PURSE_PORT", "2")
    assert Settings().port == 2
    assert Settings(port=3).port == 3


@pytest.mark.parametrize("address", ["postgresql://u:p@h/d", "postgresql://h/d", None])
def test_a_password_that_goes_nowhere_is_refused(folder: Path, address: str | None) -> None:
    (folder / "purse_database_password").write_text("p")
    values: dict[str, Any] = {"database_url": address}
    with pytest.raises(ValidationError, match="the password goes with"):
        Settings(**values)


def test_a_folder_that_is_not_there_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PURSE_SECRETS", str(tmp_path / "absent"))
    with pytest.raises(ValidationError, match="secrets"):
        Settings()
