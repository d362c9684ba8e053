"""``distance``: how far apart values are."""

from __future__ import annotations

from typing import Unpack

from privypurse.amounts import Number
from privypurse.distances import Distances
from privypurse.kinds.metric import MetricOptions
from privypurse.kinds.query import Call, Query


class Options(MetricOptions, total=False):
    embedding: bool


def distance(target: str | None = None, **options: Unpack[Options]) -> Query[Distances]:
    """Distances between the values of one attribute, or of each if ``target`` is None."""
    return Query({"kind": "distance", "target": target, **options}, Distances.read, described=True)


class DistanceCall(Call):
    def distance(
        self,
        dataset: str,
        target: str | None = None,
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Distances:
        """Distances between the values of one attribute, or of all."""
        return self.ask(dataset, distance(target, **options), epsilon=epsilon, key=key)
