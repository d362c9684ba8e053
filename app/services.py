"""Everything a route may need, made once when the application starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

# Names only: a route that needs the settings must not load the readers of records for it.
if TYPE_CHECKING:
    from app.admission import Rate
    from app.answering import Answering
    from app.execution import Execution
    from app.metrics import Metrics
    from app.settings import Settings
    from app.tokens import Tokens
    from app.uploads import Uploads
    from storage.database import Database
    from storage.datasets import Datasets
    from storage.files import Files
    from storage.identities import Identities
    from storage.ledger import Ledger
    from storage.queries import Queries
    from storage.refusals import Refusals
    from storage.sessions import Sessions
    from storage.users import Users


@dataclass(frozen=True)
class Services:
    """The parts of one running service."""

    settings: Settings
    database: Database
    users: Users
    identities: Identities
    tokens: Tokens | None
    sessions: Sessions
    files: Files
    datasets: Datasets
    ledger: Ledger
    queries: Queries
    execution: Execution
    answering: Answering
    uploads: Uploads
    refusals: Refusals
    rate: Rate
    metrics: Metrics
