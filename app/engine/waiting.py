"""Waiting for a task without owning it."""

import asyncio
from typing import Any


async def over(task: asyncio.Future[Any], seconds: float) -> bool:
    """Returns whether ``task`` is over within so many seconds; it goes on either way.

    ``asyncio.wait`` for one task, in two thirds of its time: every query waits this way.
    """
    if task.done():
        return True
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def wake(_: object = None) -> None:
        if not woken.done():
            woken.set_result(None)

    timer = loop.call_later(seconds, wake)
    task.add_done_callback(wake)
    try:
        await woken
    finally:
        timer.cancel()
        task.remove_done_callback(wake)
    return task.done()
