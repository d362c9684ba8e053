"""Clusters privately: encoding, initial centres, Lloyd's iterations. Read this file first."""

from dataclasses import dataclass

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering.encoding import Encoding, learned, one_hot
from mechanisms.clustering.initial import drawn_centres
from mechanisms.clustering.lloyd import lloyd
from mechanisms.clustering.plan import ClusteringPlan
from mechanisms.distances.learn import learn
from mechanisms.distances.metric import Floats
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records, TableRecords, records_of


@dataclass(frozen=True)
class Clustering:
    """The released result: centres (clusters, axes) and the encoding of their axes."""

    encoding: Encoding
    centres: Floats


def cluster(
    records: Records,
    plan: ClusteringPlan,
    loss: PrivacyLoss,
    randomness: Randomness,
    executor: Executor,
) -> Clustering:
    """Centres of the records. The cluster of a record is never released.

    Privacy: ``loss`` under the dataset's relation, spent as ``plan.steps`` lists.
    """
    private = records_of(TableRecords, records)
    for_metric, for_iterations = plan.shares(loss)
    if plan.metric is None:
        encoding = one_hot(plan.attributes, plan.bits)
    else:
        metrics = learn(private, plan.metric, for_metric, randomness, executor)
        encoding = learned(metrics, plan.bits)
    initial = plan.initial or drawn_centres(plan.attributes, plan.clusters, randomness)
    centres = lloyd(
        private,
        encoding,
        np.array([encoding.point(record) for record in initial]),
        for_iterations.split(plan.iterations),
        plan.moves,
        randomness,
        executor,
    )
    return Clustering(encoding, centres)
