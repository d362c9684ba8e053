"""How alike the matrices of distances between rows are, by a private metric and by the true one."""

from __future__ import annotations

from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bench, Setting, rows_of
from benchmarks.data.tables import read_table
from benchmarks.distances.metric_evaluation import (
    EPSILONS,
    Floats,
    Repeated,
    Truth,
    correlation,
    points,
    squares,
)
from benchmarks.reproduction.experiments.clusters import CLUSTER_TABLES, WAYS
from benchmarks.reproduction.experiments.contexts import PAPER
from benchmarks.result import Estimate, Result, Verdict, mean
from benchmarks.simulation import randomness
from mechanisms.distances.options import Context, Rule
from mechanisms.distances.plan import plan

TIMES, ROWS = 15, 300


def run(setting: Setting, name: str) -> Result:
    result = Result()
    table = read_table(setting.data, name)
    truth = Truth(table)
    epsilons = setting.fewer(list(EPSILONS))
    # The rows are part of the experiment: the same in every run.
    rows = np.sort(np.random.default_rng(1).choice(table.rows, ROWS, replace=False))
    lines: dict[str, list[Estimate]] = {}
    for way, options in WAYS.items():
        contexts = (
            truth.rule(Rule.MEAN_SU)
            if options.context is Context.BASELINE
            else truth.drawn(options.context)
        )
        true = distances(points(table, truth.metric(contexts), rows))
        learner = Repeated(truth, plan(table.dataset, options, None))
        for epsilon in epsilons:
            loss = PrivacyLoss.parse(repr(epsilon))
            found = [
                correlation(distances(points(table, learner.learn(loss, randomness()), rows)), true)
                for _ in range(setting.times(TIMES))
            ]
            lines.setdefault(way, []).append(mean(found))
    result.plot(f"{name}, {ROWS} rows", "correlation of object matrices", epsilons, lines,
                "ε of the metric")  # fmt: skip
    best = max((line[-1] for line in lines.values()), key=lambda value: value[0])
    result.claim(
        PAPER, f"{name}: distances between objects stay close to those without privacy",
        f"correlation up to {best[0]:.3f} ± {best[1]:.3f} at the largest ε",
        Verdict.HOLDS if best[0] >= 0.9 else Verdict.OTHERWISE,
        "" if best[0] >= 0.9 else "ε is divided over all targets of the metric",
    )  # fmt: skip
    return result


def distances(where: Floats) -> Floats:
    found: Floats = np.sqrt(squares(where))
    return found


def experiments() -> list[Bench]:
    return [
        Bench(f"object_distances.{name}", f"Distances between rows of {name}",
              partial(run, name=name), 12.0, paper=PAPER, files=rows_of(name))
        for name in CLUSTER_TABLES
    ]  # fmt: skip
