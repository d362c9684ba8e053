"""8 clients × 80 requests × 3 processes against room for a quarter: exactly the room.

The slow run makes 250 requests a client. The bench ``ledger_exactness`` does the same with
64 × 10,000 × 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

import pytest

from benchmarks.ledger.exactness import contend, processes


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with processes(3) as pool:
        yield pool


@pytest.mark.parametrize("requests", [80, pytest.param(250, marks=pytest.mark.slow)])
@pytest.mark.parametrize("bound", [1, 2, 3])
def test_exactly_the_room(
    url: str, tmp_path: Path, pool: Executor, bound: int, requests: int
) -> None:
    result = contend(url, tmp_path, pool, bound=bound, clients=8, requests=requests, processes=3)
    room = 8 * requests * 3 // 4
    assert result.room == room
    assert result.outcomes == {"granted": room, "refused": 3 * room}
    assert result.off() == 0, result
