"""From edges as an upload lists them to compressed rows, refusing what is outside the domain."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.domains import GraphDomain
from storage.errors import TooLarge
from storage.files.growing import GrowingArray
from storage.files.labels import node_index
from storage.ingest.batches import Batch, Numbering, said
from storage.ingest.limits import UploadLimits
from storage.ingest.refusals import MOST, Refusal, refuse, refuse_any

ENDS = ("source", "target")
#: Edges that are looked at together for where a degree passes the bound.
PIECE = 2**14
#: Of the memory, what one entry of a window takes: 4 bytes of it, in a quarter of the whole.
WINDOW_SHARE = 16


@dataclass(frozen=True)
class CodedGraph:
    """A simple undirected graph in compressed rows: int64 (nodes + 1,) and int32 (2 · edges,)."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]


class EdgeCollector:
    """Checks edges batch by batch and keeps them on the disk; degrees are counted on the way.

    So memory is bounded by the domain, and an edge too many stops the reading where it stands.
    ``scratch``: a folder for files without names. ``memory``: bytes that sorting may take.
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
        """Take the edges of a batch with columns ``source`` and ``target``.

        Raises: InvalidRecords for an unknown node, a self loop or a degree above the bound;
            TooLarge for more edges than any upload may have.
        """
        if self._edges + batch.rows > self._most_edges:
            raise TooLarge(f"an upload may have at most {self._most_edges} edges")
        source, target = (self._codes(batch, name) for name in ENDS)
        refuse_any(self._unknown(batch.numbering, source, target))
        refuse_any(_self_loops(batch.numbering, source, target))
        self._count(batch.numbering, source, target)
        for kept, ends in zip(self._ends, (source, target), strict=True):
            kept.append(ends)
        self._starts.append(self._edges)
        self._numberings.append(batch.numbering)
        self._edges += batch.rows

    def finish(self) -> CodedGraph:
        """The graph of all edges; InvalidRecords when one of them repeats an earlier one."""
        from mechanisms.kernels.windows import first_repeated, windowed_rows

        source, target = (kept.seen() for kept in self._ends)
        indptr = np.concatenate(([0], np.cumsum(self._degrees)))
        indices = GrowingArray(self._scratch, np.int32).extend(2 * self._edges)
        if windowed_rows(source, target, indptr, indices, self._window):
            repeated = first_repeated(source, target, indptr, self._window)
            assert repeated is not None
            batch = bisect_right(self._starts, repeated) - 1
            place = self._numberings[batch].place(repeated - self._starts[batch])
            refuse(place, "duplicate_edge", f"{said(place)}: this edge stands further up already")
        return CodedGraph(indptr, indices)

    def _codes(self, batch: Batch, name: str) -> NDArray[np.int32]:
        import pyarrow as pa

        column = batch.columns[name]
        if not pa.types.is_dictionary(column.type):
            return self._nodes.codes(column)
        codes = np.append(self._nodes.codes(column.dictionary), np.int32(-1))
        # A cell without a value has the index after the last: the −1.
        unset = len(codes) - 1
        places = column.indices.fill_null(unset).to_numpy(zero_copy_only=False)
        known: NDArray[np.int32] = codes[places]
        return known

    def _unknown(
        self, numbering: Numbering, source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> Iterator[Refusal]:
        for name, codes in zip(ENDS, (source, target), strict=True):
            for row in np.flatnonzero(codes < 0)[:MOST]:
                place = numbering.place(row, name)
                yield place, "unknown_node", f"{said(place)}: not a node of this dataset"

    def _count(
        self, numbering: Numbering, source: NDArray[np.int32], target: NDArray[np.int32]
    ) -> None:
        bound = self._domain.max_degree
        before = self._degrees
        self._degrees = before + np.bincount(source, minlength=len(before))
        self._degrees += np.bincount(target, minlength=len(before))
        if self._degrees.max() > bound:
            refuse_any(_too_many(numbering, source, target, before, bound))


def _self_loops(
    numbering: Numbering, source: NDArray[np.int32], target: NDArray[np.int32]
) -> Iterator[Refusal]:
    for row in np.flatnonzero(source == target)[:MOST]:
        place = numbering.place(row)
        yield place, "self_loop", f"{said(place)}: an edge from a node to itself"


def _too_many(
    numbering: Numbering,
    source: NDArray[np.int32],
    target: NDArray[np.int32],
    before: NDArray[Any],
    bound: int,
) -> Iterator[Refusal]:
    """The first edges at which a node has more than ``bound``, given the degrees ``before``."""
    degrees, found = before.copy(), 0
    # In pieces: sorting takes ten times the memory of what is sorted, and the first ones will do.
    for first in range(0, len(source), PIECE):
        piece = slice(first, first + PIECE)
        ends = np.column_stack((source[piece], target[piece])).ravel()
        for row in np.unique(np.flatnonzero(_reached(ends, degrees) > bound) // 2)[: MOST - found]:
            found += 1
            place = numbering.place(first + int(row))
            yield place, "degree", f"{said(place)}: a node has more than max_degree = {bound} edges"
        if found == MOST:
            return
        np.add.at(degrees, ends, 1)


def _reached(ends: NDArray[np.int32], before: NDArray[Any]) -> NDArray[np.int64]:
    """The degree that the node at each end has with this edge."""
    order = np.argsort(ends, kind="stable")
    grouped = ends[order]
    starts = np.searchsorted(grouped, grouped)  # where each node's group begins
    degrees = np.empty(len(ends), np.int64)
    degrees[order] = before[grouped] + np.arange(len(ends)) - starts + 1
    return degrees
