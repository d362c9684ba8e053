"""Clusters privately: encoding, initial centres, Lloyd's iterations. Read this file first."""

from dataclasses import dataclass

import numpy as np

from mechanisms.clustering.encoding import Encoding, learned, one_hot
from mechanisms.clustering.lloyd import Centres, lloyd
from mechanisms.clustering.plan import ClusteringPlan
from mechanisms.clustering.starts import best_start, noisy_margins, renewed
from mechanisms.distances.learn import learn
from mechanisms.distances.metric import Floats
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
    bits = plan.bits_at(for_iterations)
    if plan.metric is None:
        encoding = one_hot(plan.attributes, bits)
    else:
        metrics = learn(context.at(for_metric), plan.metric)
        encoding = learned(metrics, bits, 2 if context.loss.unpriced else 1)
    within = context.at(for_iterations)
    if plan.initial is not None:
        first = np.array([encoding.point(record) for record in plan.initial])
        return Clustering(encoding, lloyd(within, encoding, first, plan.iterations, plan.moves))
    return Clustering(encoding, _from_best_start(within, encoding, plan))


def _from_best_start(context: QueryContext, encoding: Encoding, plan: ClusteringPlan) -> Centres:
    """Iterations from the best of the starts that the plan has at this loss."""
    trials, source = plan.trials(context.loss), context.randomness.stream()
    parts = plan.parts(context.loss, trials)
    margins = noisy_margins(context.at(parts.margins), plan.attributes, plan.moves)

    def draw() -> Floats:
        return encoding.point(margins.record(source))

    first = best_start(
        context.at(parts.trials),
        encoding,
        draw,
        encoding.mean(margins.weights),
        plan.clusters,
        trials,
        plan.moves,
    )
    return lloyd(
        context.at(parts.iterations),
        encoding,
        first,
        plan.last(trials),
        plan.moves,
        between=lambda reached: renewed(reached, draw),
    )
