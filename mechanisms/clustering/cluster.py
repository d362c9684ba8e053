"""Clusters privately: encoding, initial centres, Lloyd's iterations. Read this file first."""

from dataclasses import dataclass

import numpy as np

from mechanisms.clustering.encoding import Encoding, learned, one_hot
from mechanisms.clustering.initial import drawn_centres
from mechanisms.clustering.lloyd import Centres, lloyd
from mechanisms.clustering.plan import ClusteringPlan
from mechanisms.distances.learn import learn
from mechanisms.model.context import QueryContext


@dataclass(frozen=True)
class Clustering:
    """The released result: centres (clusters, axes) and the encoding of their axes."""

    encoding: Encoding
    centres: Centres


def cluster(context: QueryContext, plan: ClusteringPlan) -> Clustering:
    """Centres of the records. The cluster of a record is never released.

    Privacy: ``context.loss`` under the dataset's relation, spent as ``plan.steps`` lists.
    """
    for_metric, for_iterations = plan.shares(context.loss)
    if plan.metric is None:
        encoding = one_hot(plan.attributes, plan.bits)
    else:
        metrics = learn(context.at(for_metric), plan.metric)
        encoding = learned(metrics, plan.bits)
    initial = plan.initial or drawn_centres(plan.attributes, plan.clusters, context.randomness)
    first = np.array([encoding.point(record) for record in initial])
    centres = lloyd(context.at(for_iterations), encoding, first, plan.iterations, plan.moves)
    return Clustering(encoding, centres)
