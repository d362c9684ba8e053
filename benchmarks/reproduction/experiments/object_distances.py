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
from benchmarks.reproduction.experiments.context_effects import judge_fall
from benchmarks.reproduction.experiments.distances import OWN, OWN_OPTIONS, judge_near, loss_of
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import Result, mean
from mechanisms.distances.learn import TargetMetric

TIMES, ROWS = 15, 300


def run(result: Result, setting: Setting, name: str) -> None:
    truth = Truth(read_table(setting.data, name))
    epsilons, times = setting.fewer(EPSILONS), setting.times(TIMES)
    # Every run has the same rows, by a fixed seed, so runs differ only in their noise.
    rows = np.sort(np.random.default_rng(1).choice(truth.table.rows, ROWS, replace=False))

    def distances(metric: list[TargetMetric]) -> Floats:
        return np.sqrt(squares(points(truth.table, metric, rows)))

    def compared(way: str, epsilon: float, count: int) -> Floats:
        """Correlation and L1 per cell of private matrices with the true one, (2, count)."""
        true, learner = ways[way]
        private = [distances(m) for m in learner.answers(loss_of(way, epsilon), count)]
        likeness = [correlation(one, true) for one in private]
        return np.array([likeness, [np.abs(one - true).mean() for one in private]])

    ways = {
        way: (distances(truth.metric(truth.contexts(options))), truth.learner(options))
        for way, options in {**WAYS, OWN: OWN_OPTIONS}.items()
    }
    values = {way: [compared(way, e, times) for e in epsilons] for way in ways}
    for number, measure in enumerate(("correlation", "L1 per cell")):
        estimates = {way: [mean(one[number]) for one in line] for way, line in values.items()}
        result.plot(f"{name}, {ROWS} rows", f"{measure} of object matrices", epsilons, estimates,
                    "ε of the metric")  # fmt: skip
    best = max(WAYS, key=lambda way: float(values[way][-1][0].mean()))
    judge_near(
        result,
        setting,
        f"{name}: distances between objects stay close to those without privacy",
        f" at the largest ε, {best}",
        values[best][-1][0].tolist(),
        lambda: float(compared(best, epsilons[-1], 1)[0, 0]),
        "ε is divided over all targets of the metric",
    )
    nearest = min(WAYS, key=lambda way: float(values[way][-1][1].mean()))
    first, last = (values[nearest][place][1] for place in (0, -1))

    def draw() -> float:
        wide, narrow = (float(compared(nearest, e, 1)[1, 0]) for e in (epsilons[0], epsilons[-1]))
        return wide - narrow

    judge_fall(result, setting, f"{name}: the L1 per cell of object matrices", first, last, draw)


BENCHES = for_each(
    "object_distances", "Distances between rows of {}", run, DISTANCES,
    dict.fromkeys(CLUSTER_TABLES, 18.0), rows_of,
)  # fmt: skip
