"""``privypurse login`` and ``logout``: a person in place of a key."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated

import typer

from privypurse.cli.service import Credentials, fail
from privypurse.client import PrivyPurse
from privypurse.device_flow import SCOPE, Login, Prompt
from privypurse.device_flow import login as sign_in
from privypurse.problems import PurseError


def login(
    context: typer.Context,
    issuer: Annotated[
        str, typer.Option(envvar="PRIVYPURSE_ISSUER", help="Address of the OpenID provider.")
    ],
    client_id: Annotated[
        str, typer.Option(envvar="PRIVYPURSE_CLIENT_ID", help="Id of this command there.")
    ],
    scope: Annotated[str, typer.Option(help="Scopes to ask for.")] = SCOPE,
    audience: Annotated[
        str | None, typer.Option(help="Audience to ask for, where the provider needs it.")
    ] = None,
) -> None:
    """Sign in by the OpenID provider of the service, in a browser on any machine."""
    credentials: Credentials = context.find_root().obj
    try:
        person = sign_in(
            credentials.url, issuer, client_id, show=_show, scope=scope, audience=audience
        )
        try:
            with PrivyPurse(credentials.url, person) as purse:
                name = purse.me().name
        except PurseError:
            # Danger: later commands would use the tokens of this failed sign-in. They are removed
            # from this machine even if the provider cannot revoke them.
            with suppress(PurseError):
                person.end()
            raise
    except PurseError as error:
        fail(str(error))
    typer.echo(f"Signed in to {credentials.url} as {name}.")


def logout(context: typer.Context) -> None:
    """Forget the sign-in on this machine, and revoke it at the provider."""
    credentials: Credentials = context.find_root().obj
    try:
        Login(credentials.url).end()
    except PurseError as error:
        fail(str(error))
    typer.echo(f"Signed out of {credentials.url}.")


def _show(prompt: Prompt) -> None:
    typer.echo(f"Open {prompt.address} in a browser and type the code {prompt.code}")
    if prompt.complete is not None:
        typer.echo(f"or open {prompt.complete}")


COMMANDS: dict[str, Callable[..., None]] = {"login": login, "logout": logout}
