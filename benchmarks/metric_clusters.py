"""Clusters and neighbours of private rows by a private metric, for ``distances``.

Labels and neighbours of private rows are an evaluation and never a release. ε is that of the whole
metric. *one-hot* stands for no metric, *DILCA_M* and *DILCA_RR* for metrics without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.context_quality import Line
from benchmarks.metric_evaluation import (
    SIZE,
    Floats,
    Truth,
    adjusted_rand,
    crossed,
    neighbour_accuracy,
    one_hot_points,
    points,
    squares,
    ward,
)
from benchmarks.repeated_learning import Repeated
from benchmarks.simulation import randomness
from benchmarks.tables import Table
from mechanisms.clustering.encoding import Encoding, learned, one_hot
from mechanisms.clustering.initial import drawn_centres
from mechanisms.clustering.lloyd import lloyd, partial_distances
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import plan
from mechanisms.kernels.assignment import cluster_counts
from mechanisms.model.executor import Inline

#: Rows that Ward's clustering and neighbours look at, drawn without replacement.
SAMPLE = 700
CLUSTERING_LOSS, ITERATIONS, GRID_BITS = 2.0, 5, 16

WAYS = {
    "max_relevance": Options(Context.MAX_RELEVANCE, context_size=SIZE),
    "max_dependency": Options(Context.MAX_DEPENDENCY, context_size=SIZE),
    "baseline mean_su": Options(Context.BASELINE, rule=Rule.MEAN_SU),
}


def rows_and_classes(
    truth: Truth, epsilons: Sequence[float], times: int
) -> dict[str, dict[str, Line]]:
    """Adjusted Rand index of Ward clusters, as many as classes, and 5-nearest-neighbour accuracy,
    of each metric at each ε."""
    table = truth.table
    size = min(table.rows, SAMPLE)
    rows = np.sort(np.random.default_rng(1).choice(table.rows, size, replace=False))
    classes = table.classes[rows].astype(np.int64)
    count = len(np.unique(classes))
    measures: dict[str, Callable[[Floats], float]] = {
        "Ward": lambda apart: adjusted_rand(crossed(ward(apart, count), classes)),
        "5-NN": lambda apart: neighbour_accuracy(apart, classes),
    }
    lines: dict[str, dict[str, Line]] = {measure: {} for measure in measures}
    still = {
        "one-hot": one_hot_points(table, rows),
        "DILCA_M": points(table, truth.metric(truth.rule(Rule.MEAN_SU)), rows),
        "DILCA_RR": points(table, truth.metric(truth.rule(Rule.NOT_REDUNDANT)), rows),
    }
    for name, where in still.items():
        apart = squares(where)
        for measure, score in measures.items():
            lines[measure][name] = [np.array([score(apart)])] * len(epsilons)
    for name, options in WAYS.items():
        learner = Repeated(truth, plan(table.dataset, options, None))
        for epsilon in epsilons:
            loss = PrivacyLoss.parse(repr(epsilon))
            values: dict[str, list[float]] = {measure: [] for measure in measures}
            for _ in range(times):
                apart = squares(points(table, learner.learn(loss, randomness()), rows))
                for measure, score in measures.items():
                    values[measure].append(score(apart))
            for measure, each in values.items():
                lines[measure].setdefault(name, []).append(np.array(each))
    return lines


def k_means(truth: Truth, epsilons: Sequence[float], runs: int) -> dict[str, Line]:
    """Adjusted Rand index of all rows by their nearest private centres: ε = 2 for clusters and
    the given one for the metric; one-hot codes get the sum; the third metric has no noise."""
    table = truth.table
    learner = Repeated(truth, plan(table.dataset, WAYS["max_relevance"], None))
    codes = one_hot(truth.public.attributes, GRID_BITS)
    free = learned(truth.metric(truth.rule(Rule.MEAN_SU)), GRID_BITS)
    # Its budget does not depend on that of a metric: one line for every ε.
    without = np.array([clustered(table, free, CLUSTERING_LOSS) for _ in range(runs)])
    lines: dict[str, Line] = {"learned": [], "one-hot": []}
    for epsilon in epsilons:
        loss = PrivacyLoss.parse(repr(epsilon))
        found = []
        for _ in range(runs):
            encoding = learned(learner.learn(loss, randomness()), GRID_BITS)
            found.append(clustered(table, encoding, CLUSTERING_LOSS))
        lines["learned"].append(np.array(found))
        summed = CLUSTERING_LOSS + epsilon
        lines["one-hot"].append(np.array([clustered(table, codes, summed) for _ in range(runs)]))
    return {**lines, "metric without noise": [without] * len(epsilons)}


def clustered(table: Table, encoding: Encoding, epsilon: float) -> float:
    """Adjusted Rand index of one private clustering with the classes."""
    count = len(np.unique(table.classes))
    initial = drawn_centres(encoding.attributes, count, randomness())
    nano = int(Fraction(repr(epsilon)) * 10**9)
    centres = lloyd(
        table.records,
        encoding,
        np.array([encoding.point(record) for record in initial]),
        PrivacyLoss(nano).split(ITERATIONS),
        2,
        randomness(),
        Inline(),
    )
    columns = [(table.records.codes[a.name], len(a.levels)) for a in encoding.attributes]
    # The class goes along without a say in what is nearest.
    partial = partial_distances(encoding, centres)
    classes = int(table.classes.max()) + 1
    silent = np.concatenate([partial, np.zeros((classes, partial.shape[1]))])
    _, values = cluster_counts([*columns, (table.classes, classes)], silent)
    return adjusted_rand(values[-classes:])


def at_chance(line: Line) -> bool:
    """Whether no mean is above 0.02, where 0 is chance and 1 is agreement."""
    return max(float(values.mean()) for values in line) <= 0.02
