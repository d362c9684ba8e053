"""Assigns rows to their nearest centre, and counts each value in each cluster.

Squared distances add up over attributes, and an attribute has few values. So one table (value,
cluster) of partial distances represents all centres.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.columns import Column, stacked
from mechanisms.kernels.compiled import compiled
from mechanisms.model.executor import Executor, Inline

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

BLOCK = 1 << 16


def cluster_counts(
    columns: Sequence[Column], partial: Floats, executor: Executor | None = None
) -> tuple[Counts, Counts]:
    """The rows of each cluster, int64 (clusters,), and of each value in it, int64 (values,
    clusters).

    Args:
        columns: codes and levels of each attribute; at least one attribute.
        partial: squared distance of every value to every centre on its attribute's axes, (values of
            all attributes, clusters). A row belongs to the centre with the smallest sum, the first
            among equals. So its cluster depends on the row and on public centres alone.
    """
    levels = [size for _, size in columns]
    offsets = np.cumsum([0, *levels[:-1]], dtype=np.int64)

    def part(start: int) -> tuple[Counts, Counts]:
        codes = stacked(columns, slice(start, start + BLOCK))
        sizes = np.zeros(partial.shape[1], np.int64)
        values = np.zeros(partial.shape, np.int64)
        _assign(codes, offsets, partial, sizes, values)
        return sizes, values

    parts = (executor or Inline()).map(part, range(0, len(columns[0][0]), BLOCK))
    sizes = sum((one for one, _ in parts), np.zeros(partial.shape[1], np.int64))
    values = sum((each for _, each in parts), np.zeros(partial.shape, np.int64))
    return sizes, values


@compiled
def _assign(
    codes: NDArray[Any], offsets: Counts, partial: Floats, sizes: Counts, values: Counts
) -> None:
    clusters = partial.shape[1]
    distance = np.empty(clusters)
    for row in range(codes.shape[1]):
        distance[:] = 0.0
        for attribute in range(len(codes)):
            value = offsets[attribute] + np.int64(codes[attribute, row])
            for cluster in range(clusters):
                distance[cluster] += partial[value, cluster]
        nearest = 0
        for cluster in range(1, clusters):
            # Danger: the timing of a branch would show which cluster centre is nearer to a row,
            # which is private. So arithmetic selects the nearer one.
            nearest += (cluster - nearest) * (distance[cluster] < distance[nearest])
        sizes[nearest] += 1
        for attribute in range(len(codes)):
            values[offsets[attribute] + np.int64(codes[attribute, row]), nearest] += 1
