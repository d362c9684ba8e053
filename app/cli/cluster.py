"""Commands of a cluster that runs kernels: ``scheduler``, ``worker`` and ``certificates``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.failures import fail
from app.config.openid import LOOPBACK_HOSTS
from app.config.settings import Settings
from app.service import wings
from app.service.store import opened_shared


def scheduler(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.", min=1, max=65535)] = 8786,
) -> None:
    """Hand out work to workers until SIGTERM or Ctrl-C; certificates come from PURSE_CLUSTER_…."""
    security = _security(Settings())
    if security is None and host not in LOOPBACK_HOSTS:
        fail("without certificates a scheduler listens on this machine alone")
    wings.cluster("processes").run_scheduler(host, port, security)


def worker(
    host: Annotated[
        str | None, typer.Option(help="Address that the scheduler reaches this worker at.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="Parts at the same time.", min=1, max=1024)
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The service's data folder; with PURSE_STORE one of its own."),
    ] = None,
) -> None:
    """Run kernels for the scheduler in PURSE_CLUSTER until SIGTERM or Ctrl-C."""
    settings = Settings()
    if settings.cluster is None:
        fail("PURSE_CLUSTER says which scheduler to work for")
    security = _security(settings)
    folder = data or settings.data
    if not folder.is_dir():
        fail(f"the data folder {folder} is not there")
    with opened_shared(settings, folder.absolute()) as shared:
        wings.cluster("processes").run_worker(
            settings.cluster, shared, threads or settings.kernel_threads(), host, security
        )


def certificates(
    folder: Annotated[Path, typer.Argument(help="Where they are written; not there before.")],
) -> None:
    """Make an authority, and a certificate and a key for scheduler, workers and service."""
    try:
        wings.cluster("certificates").make_certificates(folder)
    except FileExistsError:
        fail(f"there are certificates in {folder} already")
    except OSError as error:
        fail(f"the folder {folder} cannot be used: {error.strerror}")


def _security(settings: Settings) -> Any:
    return wings.cluster("roles").security_of(settings.cluster_files())


COMMANDS = (scheduler, worker, certificates)
