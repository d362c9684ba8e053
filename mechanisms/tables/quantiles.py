"""Quantiles of the cells of a table, from noisy counts between public edges."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.tables.intervals import Box
from mechanisms.tables.noise import Noise

Numbers = NDArray[Any]
Floats = NDArray[np.float64]


def quantile_values(counts: Numbers, edges: Floats, share: float) -> Floats:
    """Interpolated quantiles (*shape,) of noisy counts (*shape, bins); negative ones count as 0.

    The quantile of no rows is the middle of the edges.
    """
    positive = np.maximum(counts, 0).astype(np.float64)
    ends = positive.cumsum(axis=-1)
    goal = share * ends[..., -1:]
    # ``goal`` is the number of rows below the quantile. The quantile lies in the first non-empty
    # bin up to whose end at least this many rows are counted.
    bin = np.argmax((ends >= goal) & (positive > 0), axis=-1)[..., None]
    inside = np.take_along_axis(positive, bin, axis=-1)
    before = np.take_along_axis(ends, bin, axis=-1) - inside
    part = np.clip((goal - before) / np.maximum(inside, 1e-300), 0.0, 1.0)
    values = edges[bin] + part * (edges[bin + 1] - edges[bin])
    middle = edges[0] / 2 + edges[-1] / 2
    result: Floats = np.where(ends[..., -1] > 0, values[..., 0], middle)
    return result


def quantile_boxes(
    counts: Numbers, edges: Floats, share: float, noise: Noise, terms: int, miss: float
) -> Box:
    """Intervals (*shape,) that miss the true quantile with a chance of at most ``miss``.

    Args:
        counts: noisy whole numbers, (*shape, bins), each with ``terms`` draws of ``noise``.
        share: q in (0, 1); the true quantile is in the first bin j with D_j = F_j − q·F ≥ 0, where
            F_j counts the rows up to the end of bin j and F all rows.

    For the true bin j: D_j ≥ 0 and D_{j−1} < 0. The answer is every bin for which neither noisy
    number contradicts that by more than a bound that its noise exceeds with chance miss / 2. The
    true bin is fixed, so two bounds suffice, however many bins there are.
    """
    bins = counts.shape[-1]
    ends = counts.cumsum(axis=-1)
    distances = ends - share * ends[..., -1:]
    below = np.arange(1, bins + 1, dtype=np.int64) * terms
    # The number D_j for bin j is the count up to the end of the bin less the share q of all rows.
    # The quantile is in the first bin where D_j is not negative. The noise of D_j is (1 − q) times
    # that of the bins up to j, less q times that of the later bins. It is symmetric, so one bound
    # serves both sides.
    widths = noise.upper_bounds(below, bins * terms - below, 1 - share, share, miss / 2)
    possible = distances >= -widths
    possible[..., 1:] &= distances[..., :-1] < widths[:-1]
    value = quantile_values(counts, edges, share)
    first = np.argmax(possible, axis=-1)
    last = bins - 1 - np.argmax(possible[..., ::-1], axis=-1)
    some = possible.any(axis=-1)
    low = np.where(some, np.minimum(edges[first], value), value)
    high = np.where(some, np.maximum(edges[last + 1], value), value)
    return Box(low, high)
