"""Readiness, versions, limits and metrics of the service."""

import hmac
import platform
from dataclasses import dataclass
from functools import partial

from app import __version__
from app.contract.health import Readiness, Version
from app.identity.callers import Caller
from app.telemetry import metrics
from app.usecases import catalogue
from app.usecases.services import Services
from app.usecases.visibility import require
from storage.errors import NotFound
from storage.files.free_space import has_room

#: The media type of the metrics that ``exposition`` returns.
EXPOSITION_MEDIA_TYPE = metrics.MEDIA_TYPE


@dataclass(frozen=True)
class Overview:
    """The state of the service, as its admins see it."""

    readiness: Readiness
    version: Version
    database: str
    limits: dict[str, object]
    has_metrics: bool


def readiness(services: Services) -> Readiness:
    """Whether database, migrations, data folder and store are usable, and heads are found.

    After a start it is not ready until the versions of all datasets were opened. A version that
    cannot be opened keeps only its own dataset from answering, so it does not count here. It is
    warming up until the compiled kernels are loaded.
    """
    folders = (services.settings.heads_file().parent, services.database.folder)
    ready = (
        services.database.ready()
        and services.files.usable()
        and all(has_room(folder) for folder in folders if folder is not None)
        and not services.publisher.lacks_heads
        and services.opener.is_ready()
    )
    if not ready:
        return Readiness(status="not_ready")
    return Readiness(status="ready" if services.warm_up.is_ready() else "warming_up")


async def probed(services: Services) -> Readiness:
    """As ``readiness``, for probes: in a thread of its own, once for all that wait."""
    return await services.probe.run(partial(readiness, services))


def version() -> Version:
    """The versions of the service, of its API and of Python."""
    return Version(version=__version__, api="v1", python=platform.python_version())


def overview(services: Services, caller: Caller) -> Overview:
    """State, versions and limits of the service, for admins."""
    require(caller, "admin")
    settings = services.settings
    return Overview(
        readiness=readiness(services),
        version=version(),
        database="SQLite" if services.database.embedded else "PostgreSQL",
        limits={
            **catalogue.limits(services),
            "seconds of one query": f"{settings.query_limit:g}",
            "bytes of memory of all queries": settings.query_memory,
            "cells of one table": settings.table_cells,
            "queries of one analyst at once": settings.in_flight_per_analyst,
            "queries of all at once": settings.in_flight_total,
            "requests of one key": settings.rate_limit or "not limited",
            "seconds of a session": f"{settings.session_lifetime:g}",
        },
        has_metrics=settings.metrics_token is not None,
    )


def exposition(services: Services, authorization: str) -> bytes:
    """The metrics, if ``authorization`` bears the operator's token.

    Raises: NotFound for a wrong token and where no token is set, so that only the operator can
    find out that the route exists.
    """
    token = services.settings.metrics_token
    if token is None:
        raise NotFound
    expected = f"Bearer {token.get_secret_value()}"
    if not hmac.compare_digest(authorization.encode("utf-8", "replace"), expected.encode()):
        raise NotFound
    return services.metrics.exposition()
