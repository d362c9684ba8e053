"""``AsyncPrivyPurse``: the calls of ``PrivyPurse`` for programs with an event loop.

Each call runs the call of ``PrivyPurse`` of the same name in a thread, so both keep the same
promises: one call, one answer, one charge. Danger: a task that is cancelled stops waiting, but its
query goes on and stays charged. Pass a ``key`` of your own to read its answer later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from privypurse.client import PrivyPurse
from privypurse.device_flow import Login

P = ParamSpec("P")
T = TypeVar("T")
_END: Any = object()


def _awaited(
    call: Callable[Concatenate[PrivyPurse, P], T],
) -> Callable[Concatenate[AsyncPrivyPurse, P], Awaitable[T]]:
    """The method with the same signature whose result is awaited."""

    @wraps(call)
    async def run(purse: AsyncPrivyPurse, /, *arguments: P.args, **named: P.kwargs) -> T:
        return await purse.in_thread(partial(call, purse.sync, *arguments, **named))

    return run


def _iterated(
    call: Callable[Concatenate[PrivyPurse, P], Iterator[T]],
) -> Callable[Concatenate[AsyncPrivyPurse, P], AsyncIterator[T]]:
    """The method with the same signature whose result is read with ``async for``."""

    @wraps(call)
    async def read(
        purse: AsyncPrivyPurse, /, *arguments: P.args, **named: P.kwargs
    ) -> AsyncIterator[T]:
        items = await purse.in_thread(partial(call, purse.sync, *arguments, **named))
        while (item := await purse.in_thread(partial(next, items, _END))) is not _END:
            yield item

    return read


class AsyncPrivyPurse:
    """A service and the key of one of its users, for ``await``.

    The options are those of ``PrivyPurse``. ``threads``: the most calls at the same time; further
    ones wait.
    """

    def __init__(self, url: str, key: str | Login, *, threads: int = 32, **options: Any) -> None:
        #: The synchronous client; its calls run in the threads of this object.
        self.sync = PrivyPurse(url, key, **options)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="privypurse")

    async def in_thread(self, call: Callable[[], T]) -> T:
        """Run any call in a thread of this client and wait for its result."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    me = _awaited(PrivyPurse.me)
    catalogue = _awaited(PrivyPurse.catalogue)
    datasets = _awaited(PrivyPurse.datasets)
    dataset = _awaited(PrivyPurse.dataset)
    mock = _awaited(PrivyPurse.mock)
    budgets = _awaited(PrivyPurse.budgets)
    overall_budget = _awaited(PrivyPurse.overall_budget)
    key_budget = _awaited(PrivyPurse.key_budget)
    notices = _awaited(PrivyPurse.notices)
    history = _awaited(PrivyPurse.history)
    ledger = _iterated(PrivyPurse.ledger)
    verify = _awaited(PrivyPurse.verify)

    quote = _awaited(PrivyPurse.quote)
    ask = _awaited(PrivyPurse.ask)
    queries = _iterated(PrivyPurse.queries)
    answer = _awaited(PrivyPurse.answer)
    cancel = _awaited(PrivyPurse.cancel)
    drawing = _awaited(PrivyPurse.drawing)
    selection = _awaited(PrivyPurse.selection)
    top_k = _awaited(PrivyPurse.top_k)
    tree = _awaited(PrivyPurse.tree)
    distance = _awaited(PrivyPurse.distance)
    clustering = _awaited(PrivyPurse.clustering)
    statistic = _awaited(PrivyPurse.statistic)
    table = _awaited(PrivyPurse.table)

    register = _awaited(PrivyPurse.register)
    replace_description = _awaited(PrivyPurse.replace_description)
    upload_nodes = _awaited(PrivyPurse.upload_nodes)
    upload = _awaited(PrivyPurse.upload)
    sources = _awaited(PrivyPurse.sources)
    attach_source = _awaited(PrivyPurse.attach_source)
    source_of = _awaited(PrivyPurse.source_of)
    detach_source = _awaited(PrivyPurse.detach_source)
    pull = _awaited(PrivyPurse.pull)
    withdraw = _awaited(PrivyPurse.withdraw)
    grant = _awaited(PrivyPurse.grant)
    promise_cap = _awaited(PrivyPurse.promise_cap)
    budgets_of = _awaited(PrivyPurse.budgets_of)

    request_budget = _awaited(PrivyPurse.request_budget)
    budget_requests = _iterated(PrivyPurse.budget_requests)
    grant_request = _awaited(PrivyPurse.grant_request)
    refuse_request = _awaited(PrivyPurse.refuse_request)
    erase_request = _awaited(PrivyPurse.erase_request)

    certificate = _awaited(PrivyPurse.certificate)
    dataset_certificate = _awaited(PrivyPurse.dataset_certificate)
    certificate_keys = _awaited(PrivyPurse.certificate_keys)

    users = _awaited(PrivyPurse.users)
    create_user = _awaited(PrivyPurse.create_user)
    change_roles = _awaited(PrivyPurse.change_roles)
    disable_user = _awaited(PrivyPurse.disable_user)
    enable_user = _awaited(PrivyPurse.enable_user)
    limit_user = _awaited(PrivyPurse.limit_user)
    keys = _awaited(PrivyPurse.keys)
    issue_key = _awaited(PrivyPurse.issue_key)
    revoke_key = _awaited(PrivyPurse.revoke_key)

    async def close(self) -> None:
        """Close the connection; calls that run end first."""
        await self.in_thread(self.sync.close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"Async{self.sync!r}"
