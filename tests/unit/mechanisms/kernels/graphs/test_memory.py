"""The memory of a preparation, and the number of parts into which it is cut to fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.kernels.graphs import totals
from mechanisms.kernels.graphs.memory import MOST, most_parts, preparation_memory
from mechanisms.kernels.graphs.preparation import prepare_graph, prepare_totals
from mechanisms.model.executor import Arrays, Executor, Inline, Part, PartResult
from tests.unit.mechanisms.kernels.oracles import NAMED, rows_of

sizes = st.integers(0, 10**9)


@given(sizes, sizes, st.integers(1, 64), st.integers(0, 10**13))
def test_as_many_parts_as_fit_and_not_one_more(
    nodes: int, edges: int, workers: int, memory: int
) -> None:
    parts = most_parts(nodes, edges, workers, memory)
    assert 0 <= parts <= MOST
    if parts:
        assert preparation_memory(nodes, edges, workers, parts) <= memory
    if parts < MOST:
        assert preparation_memory(nodes, edges, workers, parts + 1) > memory


def test_what_the_documents_say() -> None:
    assert preparation_memory(10**6, 0, 2, 2) == 176 * 10**6
    assert [preparation_memory(0, 1, 8, parts) for parts in (1, 3, 4, 8)] == [20, 20, 24, 40]
    assert preparation_memory(10**7, 10**8, 2, 2) == 3_760_000_000


class Wide(Executor):
    """As many workers as no machine has, which remembers into how many parts work was cut."""

    workers = 64

    def __init__(self) -> None:
        self.parts: list[int] = []

    def spread(
        self,
        kernel: Callable[[Arrays, Part], PartResult],
        arrays: Arrays,
        cut: Callable[[int], Sequence[Part]],
        *,
        work: int,
        done: Callable[[int], None] | None = None,
    ) -> list[PartResult]:
        def counted(workers: int) -> Sequence[Part]:
            pieces = cut(workers)
            self.parts.append(len(pieces))
            return pieces

        return super().spread(kernel, arrays, counted, work=work, done=done)


def prepared(name: str, executor: Any, **options: int) -> dict[str, bytes]:
    rows = rows_of(NAMED[name])
    columns = prepare_graph(*rows, executor, **options)
    totals = prepare_totals(*rows, columns["co_degree"], executor, **options)
    return {key: array.tobytes() for key, array in {**columns, **totals}.items()}


@pytest.mark.parametrize("name", NAMED)
def test_fewer_parts_find_the_same(name: str) -> None:
    executor = Wide()
    assert prepared(name, executor, most_parts=1) == prepared(name, Inline())
    egos, pairs, supports = executor.parts
    assert (egos <= 16, pairs <= 4, supports <= 1) == (True, True, True)


@pytest.mark.parametrize("name", NAMED)
def test_totals_are_added_piece_by_piece(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = prepared(name, Inline())
    monkeypatch.setattr(totals, "PIECE", 3)
    assert prepared(name, Inline()) == whole
