"""A private clustering: encoding, initial centres, Lloyd's iterations. The file to read first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.clustering.encoding import Encoding, learned, one_hot
from mechanisms.clustering.initial import drawn_centres
from mechanisms.clustering.lloyd import lloyd
from mechanisms.clustering.plan import ClusteringPlan
from mechanisms.distances.learning import learn
from mechanisms.distances.metric import Floats
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.utilities.tables import table_records


@dataclass(frozen=True)
class Clustering:
    """What was released: centres (clusters, axes) and the encoding they live in."""

    encoding: Encoding
    centres: Floats


def cluster(
    records: Records,
    plan: ClusteringPlan,
    loss: PrivacyLoss,
    randomness: Randomness,
    executor: Executor,
) -> Clustering:
    """Centres of the records; which record belongs to which is never said.

    Privacy: ``loss`` under the dataset's relation, spent as ``plan.steps`` says.
    """
    private = table_records(records)
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
