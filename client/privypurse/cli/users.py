"""``privypurse users``: users, their roles and their keys."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer

from privypurse.accounts import Key
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
            columns = (key.id, key.created.isoformat(), last_used, state, _restrictions(key))
            typer.echo("\t".join(columns))


def _restrictions(key: Key) -> str:
    restrictions = []
    if key.budget is not None:
        restrictions.append(f"{key.budget.remaining} left of {key.budget.allowance}")
    if key.datasets is not None:
        restrictions.append(f"only {', '.join(key.datasets)}")
    if key.until is not None:
        restrictions.append(f"until {key.until.isoformat()}")
    return "; ".join(restrictions)


def issue(
    context: typer.Context,
    name: Name,
    epsilon: Annotated[str | None, typer.Option(help="ε that the key may spend in total.")] = None,
    delta: Annotated[str, typer.Option(help="δ that the key may spend in total.")] = "0",
    until: Annotated[
        datetime | None, typer.Option(help="Moment from which the key is refused, in UTC.")
    ] = None,
    dataset: Annotated[
        list[str] | None, typer.Option(help="The key may query only this; may be repeated.")
    ] = None,
) -> None:
    """Issue one more key to a user and print it; it cannot be shown again."""
    end = None if until is None else until.replace(tzinfo=UTC)
    with service(context) as purse:
        issued = purse.issue_key(
            name, epsilon=epsilon, delta=delta, until=end, datasets=dataset or None
        )
        typer.echo(issued.key)


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
