"""8 clients × 80 requests × 3 processes against room for a quarter: exactly the room.

Where the analyst's allowance or the cap binds, accounts count in ρ as well. The slow run makes 250
requests per client, and has each account in ε alone and with ρ. The bench ``ledger_exactness`` does
the same with 64 × 10,000 × 3.
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


SOME = [(1, True, 80), (2, True, 40), (3, False, 40)]
MORE = [(bound, in_rho, 250) for bound in (1, 2, 3) for in_rho in (False, True)]


@pytest.mark.parametrize(
    ("bound", "in_rho", "requests"),
    [*SOME, *(pytest.param(*more, marks=pytest.mark.slow) for more in MORE)],
)
def test_exactly_the_room(
    url: str, tmp_path: Path, pool: Executor, bound: int, in_rho: bool, requests: int
) -> None:
    sizes = {"clients": 8, "requests": requests, "processes": 3}
    result = contend(url, tmp_path, pool, bound=bound, in_rho=in_rho, **sizes)
    room = 8 * requests * 3 // 4
    assert result.room == room
    assert result.outcomes == {"granted": room, "refused": 3 * room}
    assert result.off() == 0, result
