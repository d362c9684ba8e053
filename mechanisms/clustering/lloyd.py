"""A public number of Lloyd's iterations, with noise on every cluster.

Danger: never skip an empty cluster. It gets noise like any other, because otherwise the centre that
moves would reveal one distant record. Each iteration assigns every record to its nearest centre and
releases, for *every* cluster, a noisy count and noisy sums of coordinates. Adding or removing a
record moves one count by 1 and one cluster's sums by R. Replacing one moves twice as much,
in one cluster or in two. For a loss in ρ alone the noise is Gaussian, and squares count: 1 and S.
Replacing a record moves counts by 2 and sums by 2·S in two clusters, or by a diameter in one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.clustering.encoding import Encoding
from mechanisms.distances.metric import Floats
from mechanisms.kernels.assignment import cluster_counts
from mechanisms.model.context import QueryContext
from mechanisms.model.executor import Executor
from mechanisms.model.number import CONFIDENCE
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Integers
from mechanisms.noise.count_noise import likely_error, noisy
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.noise.rate import Rate


@dataclass(frozen=True)
class Rates:
    """Noise rates λ of counts and of sums per grid step: moves·(λ_counts + R·λ_sums) ≤ ε."""

    counts: Rate
    sums: Rate

    @classmethod
    def of(cls, loss: PrivacyLoss, reach: int, bits: int, moves: int) -> Rates:
        """``moves`` is 1 under add/remove and 2 under replace; ``reach`` is R in grid steps."""
        together = moves * ((1 << bits) + reach)
        # The ε of an iteration is divided between the counts and the sums of coordinates of the
        # clusters. A change of 1 in a count takes as much of it as a change of 2^bits grid steps in
        # a sum. ``units`` is the noise scale of a count at ε = 1, in units of 10⁻⁹. It is rounded
        # up, so the noise is never too small.
        units = -(-NANO * together >> bits)
        return cls(
            counts=Rate(loss.epsilon_nano, units),
            sums=Rate.of_counts(loss.epsilon_nano, together),
        )


@dataclass(frozen=True)
class Deviations:
    """Gaussian noise on counts, and on sums in grid steps: both the same in units, for one ρ."""

    counts: Deviation
    sums: Deviation

    @classmethod
    def of(cls, loss: PrivacyLoss, squares: int, bits: int, moves: int) -> Deviations:
        """``squares`` bounds Σ change² of the sums in grid steps, ``moves`` that of the counts.

        Raises: UnsupportedQuery for noise outside of exact arithmetic.
        """
        # If all points are equal, the bound on the changes of the sums is 0. A noise scale follows
        # only from a bound above 0, so 1 replaces it.
        squares = max(squares, 1)
        weight = moves << (2 * bits)
        of_counts = loss.rho_femto * weight // (weight + squares)
        return cls(
            counts=Deviation.of(of_counts, moves),
            sums=Deviation.of(loss.rho_femto - of_counts, squares),
        )


def noise_of(loss: PrivacyLoss, encoding: Encoding, moves: int) -> Rates | Deviations:
    """The noise of one iteration; ``moves`` is 1 under add/remove and 2 under replace."""
    if not loss.unpriced:
        return Rates.of(loss, encoding.reach, encoding.bits, moves)
    squares = encoding.squares
    if moves > 1:
        squares = max(2 * squares, encoding.diameter)
    return Deviations.of(loss, squares, encoding.bits, moves)


@dataclass(frozen=True)
class Centres:
    """Centres (clusters, axes), and the noisy sizes (clusters,) of their clusters.

    A size counts the records that were nearest to the centre before its last move. ``error``: the
    least number that the noise of one size exceeds with probability at most 1 − ``CONFIDENCE``.
    """

    points: Floats
    sizes: Integers
    error: int


def lloyd(
    context: QueryContext,
    encoding: Encoding,
    centres: Floats,
    iterations: int,
    moves: int,
    between: Callable[[Centres], Centres] = lambda reached: reached,
) -> Centres:
    """The centres after these iterations, float64 (clusters, axes), inside the box; and the sizes.

    Args:
        centres: public or released initial centres, (clusters, axes).
        moves: 1 under add/remove, 2 under replace.
        between: what is done to released centres before the next iteration; it reads no records.

    Privacy: ``context.loss``, shared equally; centres are functions of noisy counts and sums alone.
    Source: Blum, Dwork, McSherry, Nissim 2005 (noisy Lloyd), with the joint sensitivity of counts
        and sums; Battaglia, Celano, Pensa 2021 for the encoding.
    """
    first, *later = context.loss.split(iterations)
    reached = iteration(context.at(first), encoding, centres, moves)
    for loss in later:
        reached = iteration(context.at(loss), encoding, between(reached).points, moves)
    return reached


def iteration(context: QueryContext, encoding: Encoding, centres: Floats, moves: int) -> Centres:
    """One iteration: as ``lloyd``, with the whole of ``context.loss``."""
    sizes, sums = exact_sums(context.table, encoding, centres, context.executor)
    noise = noise_of(context.loss, encoding, moves)
    counts = noisy(sizes, noise.counts, context)
    points = moved(counts, noisy(sums, noise.sums, context), encoding)
    return Centres(points, counts, likely_error({noise.counts: 1}, CONFIDENCE))


def exact_sums(
    records: TableRecords, encoding: Encoding, centres: Floats, executor: Executor
) -> tuple[Integers, Integers]:
    """Private: the size of each cluster, and its sums of coordinates in grid steps."""
    columns = [(records.codes[a.name], len(a.levels)) for a in encoding.attributes]
    sizes, values = cluster_counts(columns, partial_distances(encoding, centres), executor)
    starts = np.cumsum([0, *(levels for _, levels in columns)])
    parts = [
        values[start : start + len(vectors)].T @ vectors
        for start, vectors in zip(starts, encoding.vectors, strict=False)
    ]
    return sizes, np.concatenate(parts, axis=1)


def partial_distances(encoding: Encoding, centres: Floats) -> Floats:
    """Squared distances (values, clusters) of values to centres, on the axes of the attribute."""
    parts, first = [], 0
    for points in encoding.points:
        here = centres[:, first : first + points.shape[1]]
        squares = (points**2).sum(axis=1)[:, None] + (here**2).sum(axis=1)
        parts.append(squares - 2 * points @ here.T)
        first += points.shape[1]
    return np.ascontiguousarray(np.concatenate(parts))


def moved(counts: Integers, sums: Integers, encoding: Encoding) -> Floats:
    """sum / max(count, 1) of every cluster, moved into the box of the encoding."""
    units = np.ldexp(sums.astype(np.float64), -encoding.bits)
    low, high = encoding.box
    clipped: Floats = np.clip(units / np.maximum(counts, 1)[:, None], low, high)
    return clipped
