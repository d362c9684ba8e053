"""Clipped scores of nodes, max(D, C): an edge moves, beside its ends, hubs alone and by little.

D is the dampened score of a·degree + b·density, and C a public number of units. The scores of small
nodes move by up to one unit when an edge joins two of their neighbours. Clipping makes them ties,
so one change moves k scores by little more than its two ends.

Let u(d) be the utility of a node of degree d and density 1, the most that d allows. A node counts
only if D > C for it or for its neighbour, and both have one degree, so Σ_{t < C} δ(t, d) < u(d).
The left side falls with d and the right side grows, so this holds from some degree on. There an
edge among the neighbours adds ⌈2^{g+1}/(d(d − 1))⌉ steps of density, and D has at most the slope
1/δ(0, d).

Source: section 2 of docs/dev/theory/joint.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Self

import numpy as np

from mechanisms.model.candidates import graph_domain
from mechanisms.model.domains import Dataset
from mechanisms.model.joint_influence import EdgeInfluence
from mechanisms.objectives.sum_influence import Member
from mechanisms.utilities.degree import Degree
from mechanisms.utilities.edge_influence import common_neighbours
from mechanisms.utilities.egocentric_density import EgocentricDensity


@dataclass(frozen=True)
class Hubs:
    """u(d) = degree·d + density·2^bits, in steps of the grid of the sum; every part is public."""

    #: The utility of a node is a multiple of its degree plus a multiple of its density. These are
    #: the two factors, in steps of the utility. The first counts for one neighbour, and the second
    #: for a density of 2^−bits. Both are above 0.
    degree: int
    density: int
    bits: int
    #: The public bound on the degree of a node.
    max_degree: int

    @classmethod
    def of(cls, members: Sequence[Member], dataset: Dataset) -> Self | None:
        """The hubs of a sum of degree and density with positive weights, else None."""
        named = {type(member): (factor, own) for member, factor, own in members}
        if named.keys() != {Degree, EgocentricDensity}:
            return None
        (degree, _), (density, own) = named[Degree], named[EgocentricDensity]
        # If the public bound on degrees is below 2, every density is 0 and no edge changes it. The
        # rule for hubs, nodes of large degree, then does not apply.
        if degree <= 0 or density <= 0 or own.largest == 0:
            return None
        return cls(degree, density, own.bits, graph_domain(dataset).max_degree)

    def influence(self, dataset: Dataset, clip: int, score_bits: int) -> EdgeInfluence | None:
        """The joint influence of clipped scores; None where most degrees score below the clip."""
        least = self.least_degree(clip)
        if least is None or 2 * least > self.max_degree:
            return None
        rise, nodes = self.rise(clip, score_bits), graph_domain(dataset).nodes
        return EdgeInfluence(nodes, 1 << score_bits, common_neighbours(dataset), 0, rise)

    @lru_cache(maxsize=1024)  # noqa: B019 - public numbers, few and small
    def least_degree(self, clip: int) -> int | None:
        """The least degree at which a score can exceed ``clip`` ≥ 1 units; None if there is none.

        From one degree on all can, because δ falls with the degree.
        """
        least = bisect_left(
            range(2, self.max_degree + 1), True, key=lambda degree: self._exceeds(degree, clip)
        )
        return 2 + least if 2 + least <= self.max_degree else None

    def rise(self, clip: int, score_bits: int) -> int:
        """The most steps 2^−score_bits by which an added edge raises an inner node's clipped score.

        It is at least the true bound, by less than one part in 2^bits of a unit.
        """
        least = self.least_degree(clip)
        if least is None:
            return 0
        # An edge that is added between two neighbours of a hub, a node of large degree, raises the
        # hub's score by less than the sum of two terms. The first falls with the degree of the hub.
        # The second, which covers the rounding of the density, grows with it. Each is taken at the
        # degree where it is largest, so the sum holds for every hub.
        pairs = self.density << self.bits + 1
        falling = Fraction(pairs, (least - 1) * (self.degree * least + pairs))
        growing = Fraction(self.density * self.max_degree, self.degree * self.max_degree + pairs)
        one = 1 << score_bits
        return min(one, ceil(one * (falling + growing)))

    def _exceeds(self, degree: int, clip: int) -> bool:
        """Whether the first ``clip`` steps δ(0), δ(1), … leave a part of u(degree) uncovered."""
        fewer = np.maximum(degree - np.arange(min(clip, degree), dtype=np.int64), 2)
        steps = int((-(-(2 << self.bits) // fewer)).sum())
        # At a distance of more changes than the degree, the sensitivity δ of the density is the
        # whole range of the density.
        steps += max(clip - degree, 0) << self.bits
        covered = clip * self.degree + self.density * steps
        return covered < self.degree * degree + (self.density << self.bits)
