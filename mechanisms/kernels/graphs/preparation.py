"""The private columns of a graph, computed once per version for every node.

Danger: all are private and leave only through a mechanism whose loss was charged.

| column | type | is |
|---|---|---|
| ``degree`` | int32 | d(v), the number of neighbours |
| ``inner_edges`` | int64 | edges among the neighbours of v |
| ``egocentric_betweenness`` | int64 | betweenness of v in steps of 2⁻²⁶, see ``egocentric`` |
| ``co_degree`` | int32 | κ(v), the most neighbours that v shares with any other node |
| ``core_number`` | int32 | the largest k of a subgraph of degrees ≥ k that holds v |
| ``h_index`` | int32 | the largest h of which h neighbours of v have degrees ≥ h |

``mechanisms.kernels.graphs.totals`` has the totals of a graph.
"""

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.graphs.co_degree import (
    co_degree_block,
    co_degree_floor,
    co_degree_order,
    co_degree_work,
)
from mechanisms.kernels.graphs.coreness import core_numbers, h_indices
from mechanisms.kernels.graphs.egocentric import LARGEST_DEGREE, egocentric_block, egocentric_work
from mechanisms.kernels.graphs.graph import Nodes, Offsets
from mechanisms.kernels.graphs.memory import MOST
from mechanisms.kernels.graphs.ranks import (
    RankedGraph,
    equal_blocks,
    ranked,
    ranked_graph,
    search_work,
)
from mechanisms.kernels.graphs.totals import graph_totals, totals_work
from mechanisms.model.executor import Arrays, Executor, PartResult

GRAPH_COLUMNS = (
    "degree",
    "inner_edges",
    "egocentric_betweenness",
    "co_degree",
    "core_number",
    "h_index",
)


def check_degree_bound(max_degree: int) -> None:
    """Refuse a public degree bound beyond which betweenness could leave 64 bits.

    Raises: ValueError when D²/2 · 2²⁶ ≥ 2⁶³ for D = max_degree, so from D = 2¹⁹ = 524,288 on.
    """
    if max_degree > LARGEST_DEGREE:
        raise ValueError(f"egocentric betweenness is exact up to max_degree {LARGEST_DEGREE}")


def preparation_work(indptr: Offsets, indices: Nodes, limit: int | None = None) -> int:
    """A bound on the cost of ``prepare_graph`` and ``prepare_totals``; private.

    In nanoseconds of one core. The part that follows from degrees is computed first. If it exceeds
    ``limit`` it is returned alone, so this call never takes more steps than the edges plus
    ``limit``.
    """
    graph = ranked(indptr, indices)
    from_degrees = (
        int(co_degree_work(graph).sum()) + int(search_work(graph).sum()) + totals_work(graph)
    )
    if limit is not None and from_degrees > limit:
        return from_degrees
    return from_degrees + egocentric_work(graph)


def prepare_graph(
    indptr: Offsets,
    indices: Nodes,
    executor: Executor,
    progress: Callable[[float], None] | None = None,
    most_parts: int = MOST,
) -> dict[str, NDArray[Any]]:
    """All ``GRAPH_COLUMNS`` of a graph, each of shape (nodes,).

    Args:
        indptr, indices: compressed rows as ``graph.compressed_rows`` returns them.
        executor: where the blocks run; the columns do not depend on its workers.
        progress: called with the share done, rising to 1, after each block and on its thread, one
            call at a time. An exception from it stops the preparation.
        most_parts: an upper bound on the workers, because their results are in memory together.

    Raises: ValueError when a degree is above ``LARGEST_DEGREE``. ``check_degree_bound`` refuses it
        earlier, from public facts.
    """
    graph = ranked(indptr, indices)
    check_degree_bound(int(graph.indptr[1]))
    search, order = search_work(graph), co_degree_order(graph)
    paths = co_degree_work(graph)[order]
    arrays = {**graph._asdict(), "order_of_pairs": order}
    share = _Share(int(search.sum()) + int(paths.sum()), progress)

    def spread(
        kernel: Callable[[Arrays, tuple[int, int]], PartResult], work: Offsets, blocks: int
    ) -> list[PartResult]:
        """``kernel`` on ``blocks`` blocks of equal work for each worker."""
        cuts: list[tuple[int, int]] = []

        def cut(workers: int) -> list[tuple[int, int]]:
            cuts.extend(equal_blocks(work, blocks * min(workers, most_parts)))
            return cuts

        def done(number: int) -> None:
            share.add(int(work[slice(*cuts[number])].sum()))

        return executor.spread(kernel, arrays, cut, work=int(work.sum()), done=done)

    # A graph is prepared in blocks of nodes of nearly equal estimated work. For the neighbourhoods
    # of nodes the estimate leaves out the paths of two edges inside them and may be too low. So
    # their blocks are many and small, with nodes of large degree first. For pairs of nodes the
    # estimate leaves out only what hubs take, which is little. Their blocks are few, because each
    # returns an array with a maximum for every node.
    egos = spread(_ego_block, search, 16)
    pairs = spread(_pair_block, paths, 4)
    co_degree = co_degree_floor(graph)
    for (maxima,) in pairs:
        np.maximum(co_degree, maxima, out=co_degree)
    return {
        "degree": np.diff(indptr).astype(np.int32),
        "inner_edges": _by_node(graph, np.concatenate([edges for edges, _ in egos])),
        "egocentric_betweenness": _by_node(graph, np.concatenate([steps for _, steps in egos])),
        "co_degree": _by_node(graph, co_degree),
        **late_columns(indptr, indices),
    }


def late_columns(indptr: Offsets, indices: Nodes) -> dict[str, NDArray[Any]]:
    """The columns that versions of earlier releases lack; linear in the edges.

    The arguments are those of ``prepare_graph``.
    """
    return {
        "core_number": core_numbers(indptr, indices),
        "h_index": h_indices(indptr, indices),
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
        indptr, indices: compressed rows as ``graph.compressed_rows`` returns them.
        co_degree: the column of that name.
        executor: where edge supports are counted; the totals do not depend on its workers.
        most_parts: as in ``prepare_graph``.
    """
    graph = ranked(indptr, indices)
    return graph_totals(graph, co_degree[graph.order], executor, most_parts)


def _ego_block(arrays: Arrays, block: tuple[int, int]) -> PartResult:
    return egocentric_block(ranked_graph(arrays), *block)


def _pair_block(arrays: Arrays, block: tuple[int, int]) -> PartResult:
    return (co_degree_block(ranked_graph(arrays), arrays["order_of_pairs"], *block),)


def _by_node(graph: RankedGraph, by_rank: NDArray[Any]) -> NDArray[Any]:
    column = np.empty_like(by_rank)
    column[graph.order] = by_rank
    return column


class _Share:
    """The share of the work that is done, reported by the thread that did it."""

    def __init__(self, total: int, progress: Callable[[float], None] | None) -> None:
        self._total, self._done = max(total, 1), 0
        self._progress, self._lock = progress, Lock()

    def add(self, work: int) -> None:
        with self._lock:
            self._done += work
            if self._progress is not None:
                self._progress(self._done / self._total)
