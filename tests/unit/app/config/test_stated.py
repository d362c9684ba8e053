"""The settings that the journal states at a start."""

from __future__ import annotations

from typing import Any

import pytest

from app.config.settings import Settings


@pytest.mark.parametrize(
    "changed",
    [
        {"release_interval": 0},
        {"opening_interval": 0},  # An interval of 0 shows analysts how long opening a version took.
        {"oidc_issuer": "https://issuer", "oidc_audience": "purse"},
        {"public_url": "https://purse.example"},
    ],
)
def test_what_reveals_instants_or_lets_people_in_is_stated(changed: dict[str, Any]) -> None:
    assert Settings(**changed).stated() != Settings().stated()


def test_no_secret_is_stated() -> None:
    secret = Settings(metrics_token="secret", store_key="secret", store_secret="secret")  # type: ignore[arg-type]
    assert secret.stated() == Settings().stated()
