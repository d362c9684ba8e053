"""Commands that run a service on this machine: ``serve`` and ``demo``."""

from __future__ import annotations

import gc
import signal
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from app import __version__
from app.cli.failures import fail
from app.config.descriptors import raise_limit
from app.config.settings import Settings
from app.usecases.maintenance import OutOfReach, make_data_folder


def version() -> None:
    """Print the version."""
    typer.echo(__version__)


def demo() -> None:
    """Play a whole session against a service of its own, with the curl lines."""
    from app.demo.__main__ import main

    raise typer.Exit(main())


def _show_key_file(file: Path) -> None:
    typer.echo(f"The first admin's key is in {file}")


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.", min=0, max=65535)] = None,
    data: Annotated[Path | None, typer.Option(help="Folder of everything that is kept.")] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help="Memory for one preparation, such as 2GB.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(help="Processes that share the port.", min=1, max=64)
    ] = None,
) -> None:
    """Serve in the foreground until SIGTERM or Ctrl-C; what is not given comes from PURSE_…."""
    # Objects that imports make live until the process ends. The garbage collector would spend a
    # tenth of the start on searching them, so it is off during the imports.
    gc.disable()
    from app.main import create_app
    from app.service.listening import is_taken, run, server_config
    from app.service.startup import opened

    gc.freeze()
    gc.enable()
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "data": data,
        "memory_limit": memory_limit,
        "processes": processes,
    }
    settings = Settings(**{name: value for name, value in options.items() if value is not None})
    if is_taken(settings.host, settings.port):
        fail(
            f"port {settings.port} of {settings.host} is taken: stop what listens there, or choose "
            "another port with --port"
        )
    try:
        make_data_folder(settings)
    except OutOfReach as error:
        fail(str(error))
    create = partial(create_app, opener=partial(opened, first_admin=_show_key_file))
    try:
        config = server_config(create, settings, raise_limit())
    except ValueError as error:
        fail(str(error))
    # After a clean stop, uvicorn sends itself the signal again. These handlers ignore it, so that
    # the command ends with status 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    run(config)


COMMANDS = (serve, demo, version)
