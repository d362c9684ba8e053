"""Values as points on a public integer grid, with which a client encodes its own records.

Everything here is public: one-hot codes by definition, learned coordinates because they were
released. So any origin may be chosen, and the best has the smallest reach R. The noise of Lloyd's
iterations grows with R = Σ over attributes of the largest L1 norm of a value's coordinates, and
Gaussian noise with the square root of S, the same sum of squared L2 norms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mechanisms.distances.learn import TargetMetric
from mechanisms.distances.metric import Floats
from mechanisms.model.domains import Attribute
from mechanisms.model.sensitivity import Integers


@dataclass(frozen=True)
class Encoding:
    """The coordinates of all levels: per attribute an array (levels, axes) in steps of 2^−bits.

    A record is the concatenation of the coordinates of its values.
    """

    attributes: tuple[Attribute, ...]
    vectors: tuple[Integers, ...]
    bits: int

    @cached_property
    def reach(self) -> int:
        """R in grid steps: the largest sum of absolute coordinates of one record."""
        return sum(int(np.abs(vectors).sum(axis=1).max()) for vectors in self.vectors)

    @cached_property
    def squares(self) -> int:
        """S in squared steps: the largest sum of squared coordinates of one record."""
        return sum(int((vectors**2).sum(axis=1).max()) for vectors in self.vectors)

    @cached_property
    def diameter(self) -> int:
        """The largest sum of squared differences between the coordinates of two records."""
        return sum(map(_diameter, self.vectors))

    @cached_property
    def points(self) -> tuple[Floats, ...]:
        """The coordinates of all levels as floats, in units instead of steps, without rounding."""
        return tuple(np.ldexp(each.astype(np.float64), -self.bits) for each in self.vectors)

    @cached_property
    def box(self) -> tuple[Floats, Floats]:
        """The smallest and the largest coordinate of any record on every axis."""
        low = np.concatenate([each.min(axis=0) for each in self.points])
        return low, np.concatenate([each.max(axis=0) for each in self.points])

    def point(self, record: Sequence[int]) -> Floats:
        """The point of a record, from its level of every attribute."""
        pairs = zip(self.points, record, strict=True)
        return np.concatenate([each[level] for each, level in pairs])

    def mean(self, weights: Sequence[Integers]) -> Floats:
        """The mean point of records whose values have these weights, one array per attribute."""
        pairs = zip(self.points, weights, strict=True)
        return np.concatenate([(each / each.sum()) @ points for points, each in pairs])


def one_hot(attributes: tuple[Attribute, ...], bits: int) -> Encoding:
    """Codes with one 1 per value; their reach R is the number of attributes."""
    vectors = tuple(np.eye(len(a.levels), dtype=np.int64) << bits for a in attributes)
    return Encoding(attributes, vectors, bits)


def learned(metrics: Sequence[TargetMetric], bits: int, power: int = 1) -> Encoding:
    """The released embedding, rounded once to the grid, in the form with the smallest reach.

    ``power``: 2 for the smallest S, which Gaussian noise grows with.
    """
    vectors = tuple(
        np.rint(np.ldexp(compact(metric.points, power), bits)).astype(np.int64)
        for metric in metrics
    )
    return Encoding(tuple(metric.attribute for metric in metrics), vectors, bits)


def compact(points: Floats, power: int = 1) -> Floats:
    """Move points so that their largest norm is small; their distances remain the same.

    The points are taken as they are, or rotated into the |Y| − 1 axes that the values span, with
    the best of some origins. The norm is L1, or L2 for ``power`` 2. The origin 0 has an L2 norm of
    at most 1 everywhere.
    """
    rotations = [points, _spanned(points)]
    shifted = [each - origin for each in rotations for origin in _origins(each)]
    return min(shifted, key=lambda each: float((np.abs(each) ** power).sum(axis=1).max()))


def _diameter(vectors: Integers) -> int:
    """The largest squared distance of two rows. Below 2⁵³ every sum of doubles here is exact."""
    norms = (vectors**2).sum(axis=1)
    if int(norms.max()) >= 1 << 50:
        raise ValueError("coordinates are too large for exact distances")
    exact = vectors.astype(np.float64)
    return int((norms[:, None] + norms - 2 * (exact @ exact.T)).max())


def _spanned(points: Floats) -> Floats:
    """Coordinates in an orthonormal basis of the differences between points."""
    differences = (points[1:] - points[0]).T
    # The QR decomposition writes the differences between the points as an orthonormal basis times
    # coordinates. Clustering needs only distances between points, which follow from the
    # coordinates, so the basis is dropped.
    _, coordinates = np.linalg.qr(differences)
    return np.concatenate([np.zeros((1, len(coordinates))), coordinates.T])


def _origins(points: Floats) -> list[Floats]:
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    return [np.zeros(points.shape[1]), middle, np.median(points, axis=0), points.mean(axis=0)]
