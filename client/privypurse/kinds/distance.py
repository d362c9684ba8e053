"""The kind of query ``distance``: the distances between the values of attributes."""

from __future__ import annotations

from typing import Unpack

from privypurse.amounts import Number
from privypurse.answers.distances import Distances
from privypurse.kinds.metric import MetricOptions
from privypurse.kinds.query import Call, Query


class Options(MetricOptions, total=False):
    embedding: bool


def distance(target: str | None = None, **options: Unpack[Options]) -> Query[Distances]:
    """A query for the distances between the values of ``target``, or of each attribute if None."""
    return Query({"kind": "distance", "target": target, **options}, Distances.read, described=True)


class DistanceCall(Call):
    def distance(
        self,
        dataset: str,
        target: str | None = None,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Distances:
        """Pay for the distances between the values of one attribute, or of every attribute.

        ``rho`` in place of ``epsilon``: Gaussian noise on the tables, in accounts that allow it.
        """
        return self.ask(dataset, distance(target, **options), epsilon=epsilon, rho=rho, key=key)
