"""Waiting for a task without owning it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from app.engine.waiting import over


async def failing() -> None:
    await asyncio.sleep(0)
    raise LookupError


async def sleeping(seconds: float) -> None:
    await asyncio.sleep(seconds)


def test_it_tells_whether_the_task_is_over() -> None:
    async def tell() -> list[bool]:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(sleeping(seconds)) for seconds in (0, 0.01, 60)]
        outcomes = [await over(task, wait) for task, wait in zip(tasks, (60, 60, 0.1), strict=True)]
        assert not tasks[-1].cancelled()
        tasks[-1].cancel()
        return outcomes

    assert asyncio.run(tell()) == [True, True, False]


def test_a_task_that_is_over_takes_no_turn_of_the_loop() -> None:
    async def tell() -> bool:
        task = asyncio.ensure_future(sleeping(0))
        await task
        waiting = over(task, 60)
        with pytest.raises(StopIteration) as returned:
            waiting.send(None)
        return bool(returned.value.value)

    assert asyncio.run(tell())


def test_the_exception_of_the_task_stays_with_it() -> None:
    async def tell() -> None:
        task = asyncio.ensure_future(failing())
        assert await over(task, 60)
        with pytest.raises(LookupError):
            task.result()

    asyncio.run(tell())


def test_a_caller_that_gives_up_leaves_the_task_alone() -> None:
    async def tell() -> None:
        task = asyncio.ensure_future(sleeping(0.05))
        waiting = asyncio.ensure_future(over(task, 60))
        await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        assert waiting.cancelled()
        await task

    asyncio.run(tell())


def test_it_leaves_no_timer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query waits this way: what its timer refers to would stay for as long as ``wait``."""

    async def tell() -> list[asyncio.TimerHandle]:
        loop = asyncio.get_running_loop()
        later, timers = loop.call_later, list[asyncio.TimerHandle]()

        def noted(*args: Any) -> asyncio.TimerHandle:
            timers.append(later(*args))
            return timers[-1]

        task = loop.create_task(failing())
        monkeypatch.setattr(loop, "call_later", noted)
        assert await over(task, 60)
        assert task.exception() is not None
        return timers

    (timer,) = asyncio.run(tell())
    assert timer.cancelled()
