"""The audit trail as clients see it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.contract.models import Reply


class AuditLine(Reply):
    """One change: ``subject`` names what was changed, ``detail`` says to what."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
