"""``privypurse quote`` and ``query``: the body of a question from a file, as the API takes it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.remote import fail, service

Body = Annotated[
    Path, typer.Argument(help='JSON file: {"dataset", "epsilon", "query"}; - for standard input.')
]


def quote(context: typer.Context, file: Body) -> None:
    """What a query would cost and promise, for free; `target` may stand in place of `epsilon`."""
    from privypurse import Query

    body = _read(file, "dataset", "query")
    with service(context) as purse:
        query: Query[Any] = Query(body["query"], _as_it_came)
        found = purse.quote(
            body["dataset"], query, epsilon=body.get("epsilon"), target=body.get("target")
        )
        charge = {"epsilon": f"{found.charge.epsilon:f}", "delta": f"{found.charge.delta:f}"}
        _show(asdict(found) | {"charge": charge})


def query(
    context: typer.Context,
    file: Body,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key and body get the same answer, free.")
    ] = None,
) -> None:
    """Ask, wait, and print the answer; charged once, whatever happens in between."""
    from privypurse import Query

    body = _read(file, "dataset", "epsilon", "query")
    with service(context) as purse:
        asked: Query[Any] = Query(body["query"], _as_it_came)
        _show(purse.ask(body["dataset"], asked, epsilon=body["epsilon"], key=idempotency_key))


COMMANDS: dict[str, Callable[..., None]] = {"quote": quote, "query": query}


def _as_it_came(reply: Any, columns: Any) -> Any:
    del columns
    return reply


def _read(file: Path, *needed: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
        body = json.loads(text)
    except OSError as error:
        fail(f"{file}: {error.strerror}", 2)
    except (ValueError, RecursionError) as error:
        fail(f"{file}: not JSON: {error}", 2)
    if not isinstance(body, dict) or not set(needed) <= body.keys():
        fail(f"{file}: needs the members {', '.join(needed)}", 2)
    return body


def _show(found: Any) -> None:
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
