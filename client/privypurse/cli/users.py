"""``privypurse users``: users, their roles and their keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from privypurse.cli.service import service

Name = Annotated[str, typer.Argument(help="Name of the user.")]
Roles = Annotated[
    list[str], typer.Option("--role", help="admin, owner, analyst or auditor; may be repeated.")
]


def create(context: typer.Context, name: Name, roles: Roles) -> None:
    """Create a user and print the first key; it cannot be shown again."""
    with service(context) as purse:
        typer.echo(purse.create_user(name, *roles).key)


def show(context: typer.Context) -> None:
    """List all users: name, roles, state."""
    with service(context) as purse:
        for user in purse.users():
            state = "disabled" if user.disabled else "enabled"
            typer.echo(f"{user.name}\t{','.join(user.roles)}\t{state}")


def roles(context: typer.Context, name: Name, roles: Roles) -> None:
    """Replace a user's roles."""
    with service(context) as purse:
        purse.change_roles(name, *roles)


def disable(context: typer.Context, name: Name) -> None:
    """Disable all keys of a user."""
    with service(context) as purse:
        purse.disable_user(name)


def enable(context: typer.Context, name: Name) -> None:
    """Enable the keys of a user again."""
    with service(context) as purse:
        purse.enable_user(name)


def keys(context: typer.Context, name: Name) -> None:
    """List a user's keys: id, creation, last use, state; never the keys themselves."""
    with service(context) as purse:
        for key in purse.keys(name):
            last_used = "never" if key.last_used is None else key.last_used.isoformat()
            state = "revoked" if key.revoked else "valid"
            typer.echo(f"{key.id}\t{key.created.isoformat()}\t{last_used}\t{state}")


def issue(context: typer.Context, name: Name) -> None:
    """Issue one more key to a user and print it; it cannot be shown again."""
    with service(context) as purse:
        typer.echo(purse.issue_key(name).key)


def revoke(
    context: typer.Context, key_id: Annotated[str, typer.Argument(help="Id of the key.")]
) -> None:
    """Revoke one key."""
    with service(context) as purse:
        purse.revoke_key(key_id)


COMMANDS: dict[str, Callable[..., None]] = {
    "create": create,
    "list": show,
    "roles": roles,
    "disable": disable,
    "enable": enable,
    "keys": keys,
    "issue-key": issue,
    "revoke-key": revoke,
}
