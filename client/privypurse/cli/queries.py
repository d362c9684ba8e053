"""``privypurse quote`` and ``query``: send the body of ``POST /v1/queries`` from a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from privypurse.amounts import Charge
from privypurse.cli.documents import print_json, read_object
from privypurse.cli.service import fail, service
from privypurse.kinds import Query
from privypurse.levels import Columns

Body = Annotated[
    Path, typer.Argument(help='JSON file: {"dataset", "epsilon", "query"}; - for standard input.')
]


def quote(context: typer.Context, file: Body) -> None:
    """Print charge and accuracy of a query, free; `target` or `rho` may replace `epsilon`."""
    body = read_object(file, "dataset", "query")
    with service(context) as purse:
        quote = purse.quote(
            body["dataset"],
            Query(body["query"], _reply),
            epsilon=body.get("epsilon"),
            rho=body.get("rho"),
            target=body.get("target"),
        )
    print_json(asdict(quote) | {"charge": _stated(quote.charge)})


def query(
    context: typer.Context,
    file: Body,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key and body get the same answer, free.")
    ] = None,
) -> None:
    """Send a query, wait, and print the answer; charged once, even if the connection is lost."""
    body = read_object(file, "dataset", "query")
    amounts = {name: body.get(name) for name in ("epsilon", "rho")}
    if list(amounts.values()).count(None) != 1:
        fail(f"{file}: name epsilon, or rho in its place, and not both", 2)
    with service(context) as purse:
        query = Query(body["query"], _reply)
        reply = purse.ask(body["dataset"], query, **amounts, key=idempotency_key)
    print_json(reply)


COMMANDS: dict[str, Callable[..., None]] = {"quote": quote, "query": query}


def _stated(charge: Charge) -> dict[str, str | None]:
    """A charge as the service states it: without ``rho`` from older ones, ε null if infinite."""
    epsilon = f"{charge.epsilon:f}" if charge.epsilon.is_finite() else None
    in_rho = {} if charge.rho is None else {"rho": f"{charge.rho:f}"}
    return {"epsilon": epsilon, "delta": f"{charge.delta:f}", **in_rho}


def _reply(reply: Mapping[str, Any], columns: Columns) -> Mapping[str, Any]:
    """Return a reply as the service sent it; it takes the place of a kind's ``read``."""
    del columns
    return reply
