"""Turns the edges of an upload into an adjacency array, and refuses edges outside the domain."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.domains import GraphDomain
from storage.errors import TooLarge
from storage.files.growing_array import GrowingArray
from storage.files.labels import node_index
from storage.ingest.batches import Batch, Numbering
from storage.ingest.limits import UploadLimits
from storage.ingest.refusals import MOST, refuse, refuse_any

ENDS = ("source", "target")
UNKNOWN_NODE = "unknown_node", "not a node of this dataset"
#: The number of edges in one piece of the search for edges that raise a degree above its bound.
PIECE = 2**14
#: Edges are sorted in windows of at most one entry per 16 bytes of the memory limit. An entry takes
#: 4 bytes, so a window takes at most a quarter of the memory.
WINDOW_SHARE = 16


@dataclass(frozen=True)
class CodedGraph:
    """A simple undirected graph in compressed sparse rows.

    The neighbours of node i are ``indices[indptr[i]:indptr[i + 1]]``; shapes are (2 · edges,) and
    (nodes + 1,).
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


class EdgeCollector:
    """Checks edges batch by batch, stores them on the disk and counts degrees.

    The domain bounds the memory, and the first edge above a limit stops the reading.
    ``scratch``: a folder for temporary files. ``memory``: the bytes that sorting may take.
    """

    def __init__(
        self,
        domain: GraphDomain,
        most_edges: int,
        scratch: Path | None = None,
        memory: int = UploadLimits.memory_bytes,
    ) -> None:
        self._domain, self._most_edges = domain, most_edges
        self._scratch, self._window = scratch, max(1, memory // WINDOW_SHARE)
        self._nodes = node_index(domain.nodes, domain.labels)
        self._degrees = np.zeros(domain.nodes, np.int64)
        self._ends = [GrowingArray(scratch, np.int32) for _ in ENDS]
        self._starts: list[int] = []
        self._numberings: list[Numbering] = []
        self._edges = 0

    def add(self, batch: Batch) -> None:
        """Add the edges of a batch with columns ``source`` and ``target``.

        Raises: InvalidRecords for an unknown node, a self loop or a degree above the bound;
            TooLarge for more edges than any upload may have.
        """
        if self._edges + batch.rows > self._most_edges:
            raise TooLarge(f"an upload may have at most {self._most_edges} edges")
        bound = self._domain.max_degree
        source, target = ends = [self._codes(batch, name) for name in ENDS]
        named = zip(ENDS, ends, strict=True)
        at = batch.numbering.refusals
        refuse_any(chain.from_iterable(at(codes < 0, *UNKNOWN_NODE, name) for name, codes in named))
        refuse_any(at(source == target, "self_loop", "an edge from a node to itself"))
        over = self._count(source, target)
        too_many = f"a node has more than max_degree = {bound} edges, repeated ones included"
        refuse_any(at(over, "degree", too_many))
        for column, codes in zip(self._ends, ends, strict=True):
            column.append(codes)
        self._starts.append(self._edges)
        self._numberings.append(batch.numbering)
        self._edges += batch.rows

    def finish(self) -> CodedGraph:
        """The graph of all edges. Raises: InvalidRecords if an edge repeats an earlier one."""
        from mechanisms.kernels.graphs.graph import first_repeated, windowed_rows

        source, target = (column.array() for column in self._ends)
        indptr = np.concatenate(([0], np.cumsum(self._degrees)))
        indices = GrowingArray(self._scratch, np.int32).extend(2 * self._edges)
        if windowed_rows(source, target, indptr, indices, self._window):
            repeated = first_repeated(source, target, indptr, max(1, self._window // 2))
            assert repeated is not None
            batch = bisect_right(self._starts, repeated) - 1
            record = repeated - self._starts[batch]
            reason = "duplicate_edge", "this edge stands further up already"
            refuse(*self._numberings[batch].refusal(record, *reason))
        return CodedGraph(indptr, indices)

    def _codes(self, batch: Batch, name: str) -> NDArray[np.int32]:
        import pyarrow as pa

        column = batch.columns[name]
        if not pa.types.is_dictionary(column.type):
            return self._nodes.codes(column)
        codes = np.append(self._nodes.codes(column.dictionary), np.int32(-1))
        # The code −1 of an unknown node is appended to the codes, and the index of every missing
        # cell refers to it. So an edge with a missing node is refused as one with an unknown node.
        unset = len(codes) - 1
        places = column.indices.fill_null(unset).to_numpy(zero_copy_only=False)
        coded: NDArray[np.int32] = codes[places]
        return coded

    def _count(self, source: NDArray[np.int32], target: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Add the edges to the degrees of their nodes.

        Returns a mask of the edges that raise a degree above ``max_degree``. It is complete up to
        the first ``MOST`` of them, which is as many as a refusal names.
        """
        before, over = self._degrees, np.zeros(len(source), np.bool_)
        self._degrees = before + np.bincount(source, minlength=len(before))
        self._degrees += np.bincount(target, minlength=len(before))
        if self._degrees.max() <= self._domain.max_degree:
            return over
        degrees = before.copy()
        # The edges that raise a degree above its bound are searched in pieces, because sorting
        # takes ten times the memory of its input.
        for first in range(0, len(source), PIECE):
            piece = slice(first, first + PIECE)
            ends = np.column_stack((source[piece], target[piece])).ravel()
            passed = np.flatnonzero(_reached(ends, degrees) > self._domain.max_degree)
            over[first + passed // 2] = True
            if np.count_nonzero(over) >= MOST:
                break
            np.add.at(degrees, ends, 1)
        return over


def _reached(ends: NDArray[np.int32], before: NDArray[Any]) -> NDArray[np.int64]:
    """The degree of the node at each end of each edge, counted over the edges up to this one.

    ``ends``: both nodes of every edge in order. ``before``: the degrees before the first edge.
    """
    order = np.argsort(ends, kind="stable")
    grouped = ends[order]
    # For each entry of ``grouped``, the position of the first entry of the same node.
    starts = np.searchsorted(grouped, grouped)
    degrees = np.empty(len(ends), np.int64)
    degrees[order] = before[grouped] + np.arange(len(ends)) - starts + 1
    return degrees
