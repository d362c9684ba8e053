"""``privypurse requests``: ask the owner of a dataset for budget, and decide about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Literal

import typer

from privypurse.budget_requests import BudgetRequest
from privypurse.cli.service import service

Dataset = Annotated[str, typer.Argument(help="Name of the dataset.")]
Id = Annotated[str, typer.Argument(help="Id of the request, as `requests list` shows it.")]
Reason = Annotated[str, typer.Option(help="Why: a text for the analyst, on one line.")]
End = datetime | Literal["as requested"] | None
Until = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d"], help="The day (UTC) on which the allowance ends."),
]


def make(
    context: typer.Context,
    dataset: Dataset,
    epsilon: Annotated[str, typer.Argument(help="ε of the whole allowance.")],
    purpose: Annotated[str, typer.Option(help="What it is for: a text for the owner.")],
    delta: Annotated[str, typer.Option(help="δ of the whole allowance.")] = "0",
    until: Until = None,
) -> None:
    """Ask the owner of a dataset for an allowance."""
    with service(context) as purse:
        _show(
            purse.request_budget(
                dataset, epsilon=epsilon, delta=delta, purpose=purpose, until=_utc(until)
            )
        )


def list_requests(context: typer.Context, dataset: Dataset) -> None:
    """List requests, newest first: id, status, analyst, amount, purpose, reason."""
    with service(context) as purse:
        for request in purse.budget_requests(dataset):
            _show(request)


def grant(
    context: typer.Context,
    dataset: Dataset,
    id: Id,
    reason: Reason,
    epsilon: Annotated[str | None, typer.Option(help="Another ε than requested.")] = None,
    delta: Annotated[str | None, typer.Option(help="Another δ than requested.")] = None,
    until: Until = None,
) -> None:
    """Grant a request, as it is or changed."""
    ends: End = "as requested" if until is None else _utc(until)
    with service(context) as purse:
        _show(
            purse.grant_request(
                dataset, id, reason=reason, epsilon=epsilon, delta=delta, until=ends
            )
        )


def refuse(context: typer.Context, dataset: Dataset, id: Id, reason: Reason) -> None:
    """Refuse a request."""
    with service(context) as purse:
        _show(purse.refuse_request(dataset, id, reason=reason))


def erase(context: typer.Context, dataset: Dataset, id: Id) -> None:
    """Erase purpose and reason of a request; an open request is withdrawn."""
    with service(context) as purse:
        purse.erase_request(dataset, id)


def _utc(day: datetime | None) -> datetime | None:
    return None if day is None else day.replace(tzinfo=UTC)


def _show(request: BudgetRequest) -> None:
    granted = request.granted
    amount = f"requested {request.requested}" if granted is None else f"granted {granted}"
    texts = (request.purpose or "", request.reason or "")
    line = (request.id, request.status, request.analyst, amount, *texts)
    typer.echo("\t".join(line))


COMMANDS: dict[str, Callable[..., None]] = {
    "make": make,
    "list": list_requests,
    "grant": grant,
    "refuse": refuse,
    "erase": erase,
}
