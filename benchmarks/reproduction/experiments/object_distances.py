"""How alike the matrices of distances between rows are, by a private metric and by the true one."""

import numpy as np

from benchmarks.bench import Setting, for_each, rows_of
from benchmarks.data.tables import read_table
from benchmarks.distances.metric_evaluation import (
    EPSILONS,
    Floats,
    Truth,
    correlation,
    points,
    squares,
)
from benchmarks.reproduction.experiments.clusters import CLUSTER_TABLES, WAYS
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import HOLDS, OTHERWISE, Result, mean
from mechanisms.distances.learn import TargetMetric

TIMES, ROWS = 15, 300


def run(result: Result, setting: Setting, name: str) -> None:
    truth = Truth(read_table(setting.data, name))
    epsilons, times = setting.fewer(EPSILONS), setting.times(TIMES)
    # The rows are part of the experiment: the same in every run.
    rows = np.sort(np.random.default_rng(1).choice(truth.table.rows, ROWS, replace=False))

    def distances(metric: list[TargetMetric]) -> Floats:
        return np.sqrt(squares(points(truth.table, metric, rows)))

    lines = {}
    for way, options in WAYS.items():
        true, learner = distances(truth.metric(truth.contexts(options))), truth.learner(options)
        lines[way] = [
            mean([correlation(distances(metric), true) for metric in learner.answers(e, times)])
            for e in epsilons
        ]
    result.plot(f"{name}, {ROWS} rows", "correlation of object matrices", epsilons, lines,
                "ε of the metric")  # fmt: skip
    best = max((line[-1] for line in lines.values()), key=lambda value: value[0])
    result.claim(
        f"{name}: distances between objects stay close to those without privacy",
        f"correlation up to {best[0]:.3f} ± {best[1]:.3f} at the largest ε",
        HOLDS if best[0] >= 0.9 else OTHERWISE, "ε is divided over all targets of the metric",
    )  # fmt: skip


BENCHES = for_each(
    "object_distances", "Distances between rows of {}", run, DISTANCES,
    dict.fromkeys(CLUSTER_TABLES, 12.0), rows_of,
)  # fmt: skip
