"""The kind of query ``clustering``, whose answer is the centres of clusters of records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict, Unpack

from privypurse.amounts import Number
from privypurse.answers.clusters import Clusters
from privypurse.kinds.metric import MetricOptions
from privypurse.kinds.query import Call, Query


class Options(TypedDict, total=False):
    encoding: Literal["learned_distance", "one_hot"]
    distance: MetricOptions
    distance_share: float
    iterations: int
    starts: int
    initial_centres: Sequence[Mapping[str, str]]


def clustering(clusters: int, **options: Unpack[Options]) -> Query[Clusters]:
    """A query for cluster centres, with the encoding that assigns your own records to them."""
    body = {"kind": "clustering", "clusters": clusters, **options}
    return Query(body, Clusters.read, described=True)


class ClusteringCall(Call):
    def clustering(
        self,
        dataset: str,
        clusters: int,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Clusters:
        """Pay for the centres of clusters of the private records and return them.

        ``rho`` in place of ``epsilon``: Gaussian noise on counts and sums, in accounts that allow
        it.
        """
        query = clustering(clusters, **options)
        return self.ask(dataset, query, epsilon=epsilon, rho=rho, key=key)
