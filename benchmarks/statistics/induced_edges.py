"""Edges of a subgraph of a public graph. The set H of nodes that induces the subgraph is private.

Neighbouring sets differ by one node. If an edge were the change, every local sensitivity LS would
be 1, and noise that follows the records could not help. Here a node v changes the count by as many
edges as it has neighbours in H, and s changes can bring s more of them into H. So exactly

    LS(H, s) = max over all v of min(deg(v), |N(v) ∩ H| + s).

The global sensitivity GS is the largest degree. This is for experiments alone: the service has no
such relation, because its graphs are private as a whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.noise.addition import Integers
from mechanisms.statistics.grid import Plan, whole_plan
from mechanisms.statistics.local_sensitivity import CoarseBound, SmoothMaximum
from mechanisms.statistics.statistic import Measurement, Part
from mechanisms.statistics.triangles import TriangleLevels

#: The mechanisms that may release the number of induced edges. Noisy local sensitivity is left out,
#: because it is for k-triangles.
RELEASED_BY = ("laplace", "smooth_sensitivity", "largest_local_sensitivities", "ladder")


@dataclass(frozen=True)
class Neighbours(SmoothMaximum):
    """LS(s) as above. Implements ``DistanceBound``.

    ``missing`` ascends: t − (the most that take part around a node of degree ≥ t), for t = 0 … GS,
    so that LS(s) is the last t with missing[t] ≤ s.
    """

    missing: Integers

    @property
    def cap(self) -> int:
        return len(self.missing) - 1

    @property
    def reach(self) -> int:
        return int(self.missing[-1])

    def at(self, distances: Integers) -> Integers:
        reached: Integers = np.searchsorted(self.missing, distances, side="right") - 1
        return reached.astype(np.int64)


@dataclass(frozen=True)
class InducedEdges(Part):
    """The number of edges of the public graph both of whose ends take part.

    Which nodes take part is private.
    """

    name: ClassVar[str] = "induced_edges"
    what = "number of induced edges"

    #: The two ends of each edge of the public graph, shape (edges,) each.
    ends: tuple[NDArray[np.int32], NDArray[np.int32]]
    #: Whether each node takes part in the subgraph, shape (nodes,); private.
    members: NDArray[np.bool_]

    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:  # noqa: ARG002
        return whole_plan(int(self._degrees().max(initial=0)), epsilon_nano)

    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        del context  # The context is not read: ``self.members`` has the private data.
        one, other = self.ends
        edges = int((self.members[one] & self.members[other]).sum())
        taking = self._counted(other[self.members[one]]) + self._counted(one[self.members[other]])
        local = Neighbours(missing(self._degrees(), taking))
        now = int(taking.max(initial=0))
        return Measurement(
            edges >> plan.exponent,
            local=CoarseBound(local, plan.exponent),
            # One change moves the local sensitivity by at most 1. So neighbours are on the same
            # level of local sensitivity or on adjacent ones.
            levels=CoarseBound(TriangleLevels(now, local.cap), plan.exponent),
        )

    def _degrees(self) -> Integers:
        return self._counted(self.ends[0]) + self._counted(self.ends[1])

    def _counted(self, nodes: NDArray[np.int32]) -> Integers:
        counts: Integers = np.bincount(nodes, minlength=len(self.members)).astype(np.int64)
        return counts


def missing(degrees: Integers, taking: Integers) -> Integers:
    """How many changes it takes at least until some node has t neighbours that take part."""
    most = np.zeros(int(degrees.max(initial=0)) + 1, np.int64)
    np.maximum.at(most, degrees, taking)
    most = np.maximum.accumulate(most[::-1])[::-1]
    return np.maximum(np.arange(len(most)) - most, 0)


def taking_part(nodes: int, chosen: Sequence[int] | Integers) -> NDArray[np.bool_]:
    inside = np.zeros(nodes, np.bool_)
    inside[np.asarray(chosen, dtype=np.int64)] = True
    return inside
