"""The parts of one running service, which use cases call. They are made once, at start-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

# Only type checkers import these. At run time, a program that needs the settings alone would
# otherwise load the readers of records too.
if TYPE_CHECKING:
    from app.config.settings import Settings
    from app.contract.health import Readiness
    from app.engine.admission import Rate, Reads
    from app.engine.answering import Answering
    from app.engine.execution import Execution
    from app.engine.opening import Opener
    from app.engine.probe import Probe
    from app.engine.uploads import Uploads
    from app.engine.verifying import Verifier
    from app.engine.warm_up import WarmUp
    from app.identity.certificate_key import CertificateKey
    from app.identity.code_flow import CodeFlow
    from app.identity.tokens import Tokens
    from app.telemetry.metrics import Metrics
    from app.usecases.charge_sums import ChargeSums
    from storage.assurance.publishing import Publisher
    from storage.assurance.refusals import Refusals
    from storage.catalogue.datasets import Datasets
    from storage.catalogue.record_versions import RecordVersions
    from storage.database.database import Database
    from storage.journal.certificate_keys import CertificateKeys
    from storage.ledger.budget_requests import BudgetRequests
    from storage.ledger.ledger import Ledger
    from storage.people.identities import Identities
    from storage.people.sessions import Sessions
    from storage.people.users import Users
    from storage.queries.history import Queries
    from storage.records.data_folder import Files
    from storage.sources.source import NamedSource


@dataclass(frozen=True)
class Services:
    """The parts of one running service."""

    settings: Settings
    database: Database
    publisher: Publisher
    users: Users
    identities: Identities
    tokens: Tokens | None
    code_flow: CodeFlow | None
    certificate_key: CertificateKey
    certificate_keys: CertificateKeys
    sessions: Sessions
    files: Files
    datasets: Datasets
    versions: RecordVersions
    ledger: Ledger
    budget_requests: BudgetRequests
    queries: Queries
    execution: Execution
    answering: Answering
    opener: Opener
    warm_up: WarmUp
    uploads: Uploads
    #: The sources of records that the operator's file defines, by name.
    sources: Mapping[str, NamedSource]
    refusals: Refusals
    verifier: Verifier
    rate: Rate
    reads: Reads
    charge_sums: ChargeSums
    probe: Probe[Readiness]
    metrics: Metrics
