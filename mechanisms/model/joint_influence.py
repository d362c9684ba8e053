"""Joint influence: how far one change moves the scores of all candidates together.

A score moves by at most ``one`` steps, so k scores could move by k times as much. One edge moves
two degrees and one record one count: what they move together is far less, and mechanisms that
release several candidates may use it. Let c be the change of all scores between two neighbours.
The *spread* of k is the most that (the sum of the k largest c) − (the sum of the k smallest c) can
be. What both sums share cancels, so k and n − k have the same spread, and k = n has none.

Everything here is public: it follows from the description of a dataset and from the request.
``tests/evidence/certification/test_joint_influence.py`` compares it with every pair of neighbours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass


@dataclass(frozen=True)
class JointInfluence(ABC):
    """Bounds on the change c of the scores of ``count`` candidates, in steps of the score."""

    count: int
    #: The most steps by which one change of the records moves any single score. For scores in steps
    #: of 2^−q it is 2^q, so that a score moves by at most 1.
    one: int

    @property
    @abstractmethod
    def one_way(self) -> bool:
        """True if all scores rise or all fall (or stay) between any two neighbours."""

    @property
    @abstractmethod
    def total(self) -> int:
        """A bound on Σ|c|, the L1 norm of the change of all scores."""

    @property
    @abstractmethod
    def squares(self) -> int:
        """A bound on Σc², the squared L2 norm of the change of all scores."""

    @abstractmethod
    def _spread(self, k: int) -> int:
        """The spread for 1 ≤ k ≤ count/2."""

    def spread_of(self, k: int) -> int:
        """A bound on the sum of the k largest c less the sum of the k smallest c.

        Raises: ValueError unless 1 ≤ k ≤ ``count``.
        """
        if not 1 <= k <= self.count:
            raise ValueError(f"k lies between 1 and {self.count}, got {k}")
        fewer = min(k, self.count - k)
        return self._spread(fewer) if fewer else 0


@dataclass(frozen=True)
class Independent(JointInfluence):
    """Every score may move by ``one``: up or down if ``both_ways``, else all the same way."""

    both_ways: bool = True

    @property
    def one_way(self) -> bool:
        return not self.both_ways

    @property
    def total(self) -> int:
        return self.count * self.one

    @property
    def squares(self) -> int:
        return self.count * self.one**2

    def _spread(self, k: int) -> int:
        return (2 if self.both_ways else 1) * k * self.one


@dataclass(frozen=True)
class Together(JointInfluence):
    """``moving`` scores move by exactly ``one``, all up or all down; no other moves."""

    moving: int

    @property
    def one_way(self) -> bool:
        return True

    @property
    def total(self) -> int:
        return min(self.moving, self.count) * self.one

    @property
    def squares(self) -> int:
        return min(self.moving, self.count) * self.one**2

    def _spread(self, k: int) -> int:
        # The spread of k is the sum of the k largest changes of scores less the sum of the k
        # smallest. ``moving`` scores change, here upwards. As many of them as possible, min(k,
        # moving), are among the k largest. Those that do not fit among the other n − k candidates
        # are among the k smallest.
        return self.one * (min(k, self.moving) - max(0, k + self.moving - self.count))


@dataclass(frozen=True)
class Few(Together):
    """At most ``moving`` scores move, by at most ``one`` each, all up or all down."""

    def _spread(self, k: int) -> int:
        return min(k, self.moving) * self.one


@dataclass(frozen=True)
class Exchange(JointInfluence):
    """One score rises by ``one`` and another falls by ``one``, or none moves."""

    @property
    def one_way(self) -> bool:
        return False

    @property
    def total(self) -> int:
        return 2 * self.one

    @property
    def squares(self) -> int:
        return 2 * self.one**2

    def _spread(self, k: int) -> int:
        return 2 * self.one


@dataclass(frozen=True)
class EdgeInfluence(JointInfluence):
    """The two ends of an edge move by at most ``one`` each, ``inner`` others by less.

    When the edge is added, the scores of inner nodes fall by at most ``fall`` and rise by at most
    ``rise``; when it is removed, the reverse. Both are at most ``one``.
    """

    inner: int
    fall: int
    rise: int

    @property
    def one_way(self) -> bool:
        return False

    @property
    def total(self) -> int:
        return min(2, self.count) * self.one + self.inner * max(self.fall, self.rise)

    @property
    def squares(self) -> int:
        return min(2, self.count) * self.one**2 + self.inner * max(self.fall, self.rise) ** 2

    def _spread(self, k: int) -> int:
        # The spread of k is the sum of the k largest changes of scores less the sum of the k
        # smallest. It is largest if both ends of the edge and k − 2 inner nodes (their common
        # neighbours) rise while k other inner nodes fall, or in the reverse case. If one end rises
        # and one falls, the spread is the mean of these two cases, so it is not larger.
        if k == 1:
            return 2 * self.one
        most, least = max(self.fall, self.rise), min(self.fall, self.rise)
        return 2 * self.one + k * most + (k - 2) * least
