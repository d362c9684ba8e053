"""Notices as clients see them."""

from datetime import datetime
from typing import Literal

from app.contract.models import Reply

NoticeKind = Literal[
    "budget_low", "version_ready", "ledger_frozen", "request_made", "request_decided"
]


class NoticeOut(Reply):
    """Something that concerns the caller now. It goes when its reason is gone.

    ``account``, of a budget that is low: ``analyst`` (on ``dataset``), ``analyst_total`` or
    ``key``. ``version``: the version that is ready. ``request``: the id of a request for
    budget. ``text``: the same as a sentence.
    """

    kind: NoticeKind
    at: datetime
    text: str
    dataset: str | None = None
    account: str | None = None
    version: int | None = None
    request: str | None = None
