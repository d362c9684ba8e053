"""Makes the parts of one service; each part needs only the parts made before it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import structlog

from app import __version__
from app.config.settings import Settings
from app.contract.health import Readiness
from app.engine.admission import InFlight, Limits, Rate, Reads
from app.engine.answering import Answering
from app.engine.attempts import Attempts
from app.engine.background import Repeated
from app.engine.deadlines import Clock
from app.engine.execution import Execution
from app.engine.opening import Opener
from app.engine.probe import Probe
from app.engine.schedule import Schedule
from app.engine.scheduler import Scheduler
from app.engine.uploads import Uploads
from app.engine.verifying import Verifier
from app.engine.warm_up import WarmUp
from app.identity.certificate_key import CertificateKey
from app.identity.code_flow import CodeFlow
from app.identity.tokens import Tokens
from app.service import warm, wings
from app.service.gauges import watch
from app.service.heads import alarmed, heads_of, watched
from app.service.sources import named_sources
from app.service.speeds import MachineSpeeds
from app.service.store import opened_files
from app.service.webhook import announced
from app.telemetry.metrics import Metrics
from app.usecases.charge_sums import ChargeSums
from app.usecases.services import Services
from mechanisms.model.executor import Executor
from mechanisms.noise.keystream import SystemRandomness
from storage.assurance.refusals import Refusals
from storage.catalogue.datasets import Datasets
from storage.catalogue.record_versions import RecordVersions
from storage.database.database import Database
from storage.files.shared import Shared
from storage.journal.certificate_keys import CertificateKeys
from storage.journal.settings import state_settings
from storage.ledger.budget_requests import BudgetRequests
from storage.ledger.ledger import Ledger
from storage.people.identities import Identities
from storage.people.sessions import Sessions
from storage.people.users import Users
from storage.queries.history import Queries

log = structlog.get_logger("privypurse.startup")

#: Seconds between two writes of the counts of refused queries to the database.
REFUSALS_SECONDS = 10.0
#: Seconds between two readings of the gauges of this process, which other processes also show.
METRICS_SECONDS = 5.0


@contextmanager
def opened(
    settings: Settings, metrics: Metrics, first_admin: Callable[[Path], None] = lambda _: None
) -> Iterator[Services]:
    """The services on one data folder.

    The first start makes the first admin, and calls ``first_admin`` with the file of its key.
    """
    with ExitStack() as closing:
        files = closing.enter_context(opened_files(settings, settings.data.absolute()))
        database = Database.open(settings.url(), settings.data.absolute())
        closing.callback(database.close)
        heads = heads_of(settings)
        publisher = closing.enter_context(
            watched(database, heads, settings.heads_interval, settings.heads_command)
        )
        users = Users(database)
        key_file = settings.bootstrap_key_file.absolute()
        if users.bootstrap(key_file):
            first_admin(key_file)
        state_settings(database, settings.stated())
        certificate_key = CertificateKey.open(settings.data.absolute())
        certificate_keys = CertificateKeys(database)
        certificate_keys.state(certificate_key.public)
        datasets = Datasets(database, files)
        versions = RecordVersions(database, files, datasets)
        versions.claim_files()
        versions.sweep()
        ledger = Ledger(
            database,
            lease_us=round(settings.lease * 1e6),
            on_alarm=partial(alarmed, heads),
            may_charge=lambda: not publisher.lacks_heads,
        )
        queries = Queries(database)
        limits = Limits(settings.query_memory, settings.table_cells, settings.query_limit)
        speeds = MachineSpeeds(settings.data)
        elsewhere = closing.enter_context(_cluster(settings, files.shared))
        execution = Execution(settings.kernel_threads(), settings.slots(), elsewhere)
        closing.callback(execution.close)
        warm_up = _warm_up(settings, speeds)
        closing.callback(warm_up.close)
        in_flight = InFlight(settings.in_flight_per_analyst, settings.in_flight_total, shares=True)
        scheduler = Scheduler(_schedule(settings))
        clock = Clock(settings.release_interval)
        attempts = Attempts(
            ledger=ledger,
            queries=queries,
            execution=execution,
            randomness=SystemRandomness(),
            clock=clock,
            lease=settings.lease,
            scheduler=scheduler,
        )
        answering = Answering(
            database=database,
            ledger=ledger,
            datasets=datasets,
            versions=versions,
            queries=queries,
            attempts=attempts,
            clock=clock,
            speeds=lambda: speeds.current,
            in_flight=in_flight,
            scheduler=scheduler,
            limits=limits,
            warm_up=warm_up.wait,
        )
        openid = settings.openid()
        tokens = None if openid is None else Tokens(openid)
        code_flow = None
        if openid is not None and openid.client is not None and tokens is not None:
            code_flow = CodeFlow(openid, openid.client, tokens)
        closing.enter_context(announced(settings, database))
        refusals = Refusals(database)
        counting = Repeated("refusals", REFUSALS_SECONDS, refusals.write)
        counting.start()
        closing.callback(counting.close)
        if settings.processes > 1:
            showing = Repeated("metrics", METRICS_SECONDS, metrics.refresh)
            showing.start()
            closing.callback(showing.close)
        opener = Opener(versions, settings.opening_interval)
        opener.start()
        closing.callback(opener.close)
        uploads = Uploads(
            settings=settings,
            files=files,
            datasets=datasets,
            versions=versions,
            users=users,
            execution=execution,
            opener=opener,
        )
        verifier = Verifier(
            database, heads_of(settings), settings.verify_interval, settings.verify_whole
        )
        verifier.start()
        closing.callback(verifier.close)
        watch(metrics, attempts, in_flight, scheduler, opener, refusals, publisher, verifier)
        probe = Probe[Readiness]()
        closing.callback(probe.close)
        warm_up.start()
        log.info("started", version=__version__)
        yield Services(
            settings=settings,
            database=database,
            publisher=publisher,
            users=users,
            identities=Identities(database),
            tokens=tokens,
            code_flow=code_flow,
            certificate_key=certificate_key,
            certificate_keys=certificate_keys,
            sessions=Sessions(database, users, round(settings.session_lifetime * 1e6)),
            files=files,
            datasets=datasets,
            versions=versions,
            ledger=ledger,
            budget_requests=BudgetRequests(database),
            queries=queries,
            execution=execution,
            answering=answering,
            opener=opener,
            warm_up=warm_up,
            uploads=uploads,
            sources=named_sources(settings),
            refusals=refusals,
            verifier=verifier,
            rate=Rate(settings.rate_limit),
            reads=Reads(),
            charge_sums=ChargeSums(database),
            probe=probe,
            metrics=metrics,
        )


def _schedule(settings: Settings) -> Schedule:
    # Light queries are short and need no slot. With deadlines they may take only a share of the
    # processors, so that all queries meet their deadlines. Without deadlines no limit is needed.
    processors = settings.kernel_threads() if settings.release_interval else float("inf")
    return Schedule(settings.slots(), processors, settings.query_memory)


def _warm_up(settings: Settings, speeds: MachineSpeeds) -> WarmUp:
    # With deadlines all kernels are loaded before the first query, because loading one would make a
    # query late. Without deadlines the first query of each kind may load its kernels.
    loads = settings.release_interval > 0

    def steps() -> Iterator[None]:
        if loads:
            yield from warm.load()
        yield from speeds.steps()

    def is_ready() -> bool:
        return (warm.LOADED.is_set() or not loads) and speeds.current is not None

    return WarmUp(steps, is_ready)


@contextmanager
def _cluster(settings: Settings, shared: Shared) -> Iterator[Callable[[Executor], Executor]]:
    """Yields a function that adds the cluster to threads, if the settings name a cluster.

    Dask is loaded only in that case.
    """
    if settings.cluster is None:
        yield lambda threads: threads
        return
    security = wings.cluster("roles").security_of(settings.cluster_files())
    with ExitStack() as closing:

        def on_cluster(threads: Executor) -> Executor:
            executor: Executor = wings.cluster("executor").ClusterExecutor(
                threads,
                settings.cluster or "",
                security,
                shared,
                settings.cluster_from,
            )
            closing.callback(executor.close)  # type: ignore[attr-defined]  # not in the protocol
            return executor

        yield on_cluster
