"""Kernel threads: parts in their order, no more of them than a share, errors, and no waiting."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.engine.execution import Execution, ThreadExecutor
from tests.support.patience import PATIENCE


@pytest.fixture
def two_users() -> Iterator[ThreadExecutor]:
    executor = ThreadExecutor(2, users=2)
    yield executor
    executor.close()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 17])
def test_results_are_in_the_order_of_the_parts(two_users: ThreadExecutor, count: int) -> None:
    assert two_users.map(lambda part: part * part, range(count)) == [i * i for i in range(count)]


def test_one_user_never_waits_for_the_parts_of_another(two_users: ThreadExecutor) -> None:
    """Many parts of one query may not take all threads of the pool."""
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def blocked(part: int) -> int:
        begun.release()
        assert go_on.wait(PATIENCE)
        return part

    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(two_users.map, blocked, range(8))
        try:
            assert begun.acquire(timeout=PATIENCE)
            assert begun.acquire(timeout=PATIENCE)
            assert two_users.map(lambda part: -part, range(8)) == [-part for part in range(8)]
            assert not slow.done()
        finally:
            go_on.set()
        assert slow.result() == list(range(8))


def test_an_error_is_raised_and_stops_the_parts_that_follow(two_users: ThreadExecutor) -> None:
    seen: list[int] = []

    def fails(part: int) -> None:
        seen.append(part)
        raise ValueError(part)

    with pytest.raises(ValueError, match=r"^[01]$"):
        two_users.map(fails, range(50))
    assert len(seen) <= 2


def test_work_on_the_event_loop_fails_as_in_a_thread() -> None:
    """Libraries in other languages raise errors that are no ``Exception``."""

    class Panic(BaseException): ...

    def panics() -> None:
        raise Panic

    async def story() -> None:
        execution = Execution(1, 1)
        try:
            for run in (execution.inline, execution.job):
                with pytest.raises(Panic):
                    await run(panics)
        finally:
            execution.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("processors", "slots", "share"), [(1, 3, 1), (2, 3, 1), (4, 3, 2), (8, 4, 2), (64, 4, 16)]
)
def test_a_query_takes_its_share_and_a_preparation_all_processors(
    processors: int, slots: int, share: int
) -> None:
    execution = Execution(processors, slots)
    try:
        assert (execution.preparation.workers, execution.queries.workers) == (processors, share)
    finally:
        execution.close()
