"""The private columns of a graph, worked out once a version for every node.

| column | type | is |
|---|---|---|
| ``degree`` | int32 | d(v), the number of neighbours |
| ``inner_edges`` | int64 | edges among the neighbours of v |
| ``egocentric_betweenness`` | int64 | EBC(v) in steps of 2⁻²⁶, as ``egocentric`` defines them |
| ``co_degree`` | int32 | κ(v), the most neighbours that v shares with any other node |

All are private: they leave only through a mechanism that was paid for. Beside the columns stand
the totals of ``mechanisms.kernels.totals``.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.co_degree import co_degree_block, co_degree_floor, co_degree_work
from mechanisms.kernels.egocentric import LARGEST_DEGREE, egocentric_block, egocentric_work
from mechanisms.kernels.graph import Nodes, Offsets
from mechanisms.kernels.memory import MOST
from mechanisms.kernels.ranked import RankedGraph, equal_blocks, ranked, search_work
from mechanisms.kernels.totals import graph_totals, totals_work
from mechanisms.model.executor import Arrays, Executor, Found

GRAPH_COLUMNS = ("degree", "inner_edges", "egocentric_betweenness", "co_degree")


def check_degree_bound(max_degree: int) -> None:
    """Refuse a public degree bound beyond which betweenness could leave 64 bits.

    Raises: ValueError when D²/2 · 2²⁶ ≥ 2⁶³, that is from D = 2¹⁹ = 524,288 on.
    """
    if max_degree > LARGEST_DEGREE:
        raise ValueError(f"egocentric betweenness is exact up to max_degree {LARGEST_DEGREE}")


def preparation_work(indptr: Offsets, indices: Nodes, limit: int | None = None) -> int:
    """What ``prepare_graph`` and ``prepare_totals`` may cost together: steps of about a nanosecond
    of one core; private.

    The part that is known from the degrees comes first; when it is above ``limit`` already it is
    returned as it stands: asking costs no more than the edges and ``limit`` steps.
    """
    graph = ranked(indptr, indices)
    known = int(co_degree_work(graph).sum()) + int(search_work(graph).sum()) + totals_work(graph)
    if limit is not None and known > limit:
        return known
    return known + egocentric_work(graph)


def prepare_graph(
    indptr: Offsets,
    indices: Nodes,
    executor: Executor,
    progress: Callable[[float], None] | None = None,
    most_parts: int = MOST,
) -> dict[str, NDArray[Any]]:
    """All ``GRAPH_COLUMNS`` of a graph, each of shape (nodes,).

    Args:
        indptr, indices: compressed rows as ``graph.compressed_rows`` makes them.
        executor: where the blocks run; the columns do not depend on its workers.
        progress: told the share done, rising to 1, after each block and on the thread that ran
            it, one call at a time. What it raises stops the preparation.
        most_parts: as if there were no more workers: what they find is in memory together.

    Raises: ValueError when a degree is above ``LARGEST_DEGREE``; ``check_degree_bound`` says so
        from public facts, before there are records.
    """
    graph = ranked(indptr, indices)
    check_degree_bound(graph.largest_degree)
    search, paths = search_work(graph), co_degree_work(graph)
    share = _Share(int(search.sum()) + int(paths.sum()), progress)

    def spread(
        kernel: Callable[[Arrays, tuple[int, int]], Found], work: Offsets, blocks: int
    ) -> list[Found]:
        """``kernel`` of that many blocks of equal work for each worker."""
        made: list[tuple[int, int]] = []

        def cut(workers: int) -> list[tuple[int, int]]:
            made.extend(equal_blocks(work, blocks * min(workers, most_parts)))
            return made

        def done(number: int) -> None:
            share.add(int(work[slice(*made[number])].sum()))

        return executor.spread(kernel, graph.arrays(), cut, work=int(work.sum()), done=done)

    # Search work says little about the two-paths inside an ego, so there are many small blocks,
    # the hubs first. The work of pairs is known exactly, and its partial maxima take room.
    egos = spread(_ego_block, search, 16)
    pairs = spread(_pair_block, paths, 4)
    co_degree = co_degree_floor(graph)
    for (maxima,) in pairs:
        np.maximum(co_degree[: len(maxima)], maxima, out=co_degree[: len(maxima)])
    return {
        "degree": np.diff(indptr).astype(np.int32),
        "inner_edges": _by_node(graph, np.concatenate([edges for edges, _ in egos])),
        "egocentric_betweenness": _by_node(graph, np.concatenate([steps for _, steps in egos])),
        "co_degree": _by_node(graph, co_degree),
    }


def prepare_totals(
    indptr: Offsets,
    indices: Nodes,
    co_degree: Nodes,
    executor: Executor,
    most_parts: int = MOST,
) -> dict[str, NDArray[np.int64]]:
    """All ``totals.GRAPH_TOTALS`` of a graph.

    Args:
        indptr, indices: compressed rows as ``graph.compressed_rows`` makes them.
        co_degree: the column of that name.
        executor: where edge supports are counted; the totals do not depend on its workers.
        most_parts: as in ``prepare_graph``.
    """
    graph = ranked(indptr, indices)
    return graph_totals(graph, co_degree[graph.order], executor, most_parts)


def _ego_block(arrays: Arrays, block: tuple[int, int]) -> Found:
    return egocentric_block(RankedGraph(**arrays), *block)


def _pair_block(arrays: Arrays, block: tuple[int, int]) -> Found:
    return (co_degree_block(RankedGraph(**arrays), *block),)


def _by_node(graph: RankedGraph, by_rank: NDArray[Any]) -> NDArray[Any]:
    column = np.empty_like(by_rank)
    column[graph.order] = by_rank
    return column


class _Share:
    """How much of the work is done, told from whichever thread has done it."""

    def __init__(self, total: int, progress: Callable[[float], None] | None) -> None:
        self._total, self._done = max(total, 1), 0
        self._progress, self._lock = progress, Lock()

    def add(self, work: int) -> None:
        with self._lock:
            self._done += work
            if self._progress is not None:
                self._progress(self._done / self._total)
