"""The state and the versions of the service as clients see them."""

from __future__ import annotations

from typing import Literal

from app.contract.models import Reply


class Health(Reply):
    status: Literal["ok"] = "ok"


class Readiness(Reply):
    """``warming_up``: the process has just started, and loads what queries need."""

    status: Literal["ready", "not_ready", "warming_up"]


class Version(Reply):
    """Versions of the service and of its contract."""

    version: str
    api: str
    python: str
