"""The tools of agents: each one calls the use case of a route, and adds no rule of its own.

An answer leaves ``ask`` at its public deadline, because the use case releases it there. What an
agent may spend is the limit of its key, which the ledger enforces.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import structlog
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from app.contract import problems
from app.http.access import Caller
from app.mcp.arguments import (
    TARGET,
    AnswersArguments,
    AskOptions,
    DatasetsArguments,
    DescribeArguments,
    VerifyArguments,
    schema_of,
    schema_with_query,
)
from app.queries import QUERY_KINDS
from app.usecases import agents, ledger, queries, quotes
from app.usecases.queries import QueryRequest
from app.usecases.quotes import QuoteRequest
from app.usecases.services import Services

log = structlog.get_logger("privypurse.mcp")

Arguments = Mapping[str, Any]
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class Outcome:
    """The result of a tool as JSON text. ``is_error``: the text is a problem (RFC 9457)."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Tool:
    """One tool. ``reads_only``: a call charges nothing. ``schema``: of its arguments."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]
    run: Callable[[Services, Caller, Arguments], Awaitable[Outcome]] = field(repr=False)
    reads_only: bool = True


async def outcome(
    tool: Tool, services: Services, caller: Caller, arguments: Arguments, request_id: str
) -> Outcome:
    """Call a tool. A refusal is an outcome with the same problem as over the API."""
    try:
        return await tool.run(services, caller, arguments)
    except Exception as error:
        reply = problems.response_to(error, request_id)
        if reply is None:
            # The text of an unexpected exception may quote records, so neither log nor reply has
            # it.
            log.error("failed", request_id=request_id, error=type(error).__qualname__)
            reply = problems.response(problems.INTERNAL, request_id)
        problem = json.loads(bytes(reply.body))
        if "retry-after" in reply.headers:
            problem["retry_after"] = int(reply.headers["retry-after"])
        return Outcome(json.dumps(problem), is_error=True)


def _read(model: type[Model], arguments: Arguments) -> Model:
    """The arguments as a strict model. Raises: RequestValidationError, which quotes no input."""
    try:
        return model.model_validate_json(json.dumps(arguments))
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        raise RequestValidationError(
            [{**one, "loc": ("arguments", *one["loc"])} for one in errors]
        ) from None


def _dump(value: BaseModel) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


async def _datasets(services: Services, caller: Caller, arguments: Arguments) -> Outcome:
    sent = _read(DatasetsArguments, arguments)
    page, budgets = await run_in_threadpool(
        agents.datasets_and_budgets, services, caller, sent.limit, sent.cursor
    )
    items = [_dump(one) for one in page.items]
    return Outcome(json.dumps({"items": items, "next": page.next, "budgets": budgets}))


async def _describe(services: Services, caller: Caller, arguments: Arguments) -> Outcome:
    sent = _read(DescribeArguments, arguments)
    members: dict[str, Any] = {}
    if sent.dataset is not None:
        view, kinds = await run_in_threadpool(agents.description, services, caller, sent.dataset)
        members = {"dataset": _dump(view), "kinds": kinds}
    if sent.kind is not None:
        members["query"] = QUERY_KINDS[sent.kind].body.catalogue()
    return Outcome(json.dumps(members))


async def _quote(services: Services, caller: Caller, arguments: Arguments) -> Outcome:
    quote = await quotes.quote(services, caller, _read(QuoteRequest, arguments))
    return Outcome(quote.model_dump_json())


async def _ask(services: Services, caller: Caller, arguments: Arguments) -> Outcome:
    names = AskOptions.model_fields
    options = _read(AskOptions, {name: arguments[name] for name in names if name in arguments})
    body = {name: value for name, value in arguments.items() if name not in names}
    request = _read(QueryRequest, body)
    reply = await queries.ask(services, caller, request, options.idempotency_key, options.wait)
    return Outcome(reply.body.decode(), is_error=reply.status >= 400)


async def _answers(services: Services, caller: Caller, arguments: Arguments) -> Outcome:
    sent = _read(AnswersArguments, arguments)
    if sent.id is not None:
        view = await queries.look_up(services, caller, sent.id, sent.wait)
        return Outcome(view.body().decode())
    page = await queries.history(services, caller, sent.dataset, sent.limit, sent.cursor)
    return Outcome(page.model_dump_json())


async def _verify(services: Services, caller: Caller, arguments: Arguments) -> Outcome:
    _read(VerifyArguments, arguments)
    outcome = await ledger.verify(services, caller)
    return Outcome(outcome.model_dump_json())


#: All tools by name, in the order in which an agent needs them.
TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "datasets",
            "List datasets and budgets",
            "List the private datasets that you may query, and what remains of your budgets. Free.",
            schema_of(DatasetsArguments),
            _datasets,
        ),
        Tool(
            "describe",
            "Describe a dataset or a query kind",
            "Read the public description of a dataset with an example of each query kind that "
            "fits it, or all members of one query kind. Free.",
            schema_of(DescribeArguments),
            _describe,
        ),
        Tool(
            "quote",
            "Price a query",
            "Read the charge and the expected accuracy of a query without running it. Free: it "
            "reads no records. `affordable` is false if your budget does not hold the charge.",
            schema_with_query({"target": TARGET}),
            _quote,
        ),
        Tool(
            "ask",
            "Ask a query",
            "Answer one query. It is charged to your budget, for good. The reply has the answer, "
            "its `id`, what remains, and the `receipt`: the hash of the charge in the ledger. "
            "Cite id and receipt with every number. The same `idempotency_key` and query are "
            "charged once. With status `running`, call `answers` with the id.",
            schema_with_query(AskOptions.model_json_schema()["properties"]),
            _ask,
            reads_only=False,
        ),
        Tool(
            "answers",
            "Read earlier answers",
            "Read one earlier reply by its id, or list earlier queries, newest first. Free: a "
            "stored answer costs nothing, and asking again would.",
            schema_of(AnswersArguments),
            _answers,
        ),
        Tool(
            "verify",
            "Verify the ledger",
            "Verify the hash chains of your accounts, in which every charge stands. Free.",
            schema_of(VerifyArguments),
            _verify,
        ),
    )
}
