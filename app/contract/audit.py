"""The audit trail as clients see it."""

from typing import Any

from pydantic import Field

from app.contract.models import Reply
from app.contract.times import Moment


class AuditLine(Reply):
    """One change: ``subject`` names the changed thing, and ``detail`` has its new values."""

    at: Moment = Field(validation_alias="at_us")
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]
