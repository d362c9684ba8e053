"""Seconds of a processor that each way to learn a whole metric takes, from records to metric."""

from __future__ import annotations

import statistics
import time

from accounting.privacy_loss import PrivacyLoss
from app.service.warm import warm
from benchmarks.bench import Bench, Setting, rows_of
from benchmarks.data.tables import read_table
from benchmarks.reproduction.experiments.contexts import PAPER
from benchmarks.reproduction.experiments.distances import CONTEXT_TABLES
from benchmarks.result import Result, Verdict, timed
from benchmarks.simulation import randomness
from mechanisms.distances.learn import learn
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import plan
from mechanisms.model.executor import Inline

REPEATS = 3
WAYS = {
    "baseline": Options(Context.BASELINE, rule=Rule.MEAN_SU),
    "mean_su": Options(Context.MEAN_SU),
    "max_relevance": Options(Context.MAX_RELEVANCE),
    "max_dependency": Options(Context.MAX_DEPENDENCY),
}


def run(setting: Setting) -> Result:
    result = Result()
    warm()
    tables = setting.fewer(list(CONTEXT_TABLES))
    seconds: dict[str, dict[str, float]] = {}
    for name in tables:
        table = read_table(setting.data, name)
        for way, options in WAYS.items():
            public = plan(table.dataset, options, None)
            runs = []
            for _ in range(REPEATS):
                begun = time.process_time()
                learn(table.records, public, PrivacyLoss(10**9), randomness(), Inline())
                runs.append(time.process_time() - begun)
            seconds.setdefault(name, {})[way] = statistics.median(runs)
    result.table(
        "seconds for the whole metric, k = 3", ["table", *WAYS],
        [[name, *(timed(seconds[name][way]) for way in WAYS)] for name in tables],
    )  # fmt: skip
    slowest = sum(max(ways, key=lambda w: ways[w]) == "max_dependency" for ways in seconds.values())
    result.claim(
        PAPER, "max_dependency takes most time, since it counts every subset of k attributes",
        f"on {slowest} of {len(seconds)} tables",
        Verdict.HOLDS if slowest == len(seconds) else Verdict.OTHERWISE,
        "" if slowest == len(seconds) else "compiled kernels share counts between subsets and "
        "targets",
    )  # fmt: skip
    return result


def experiments() -> list[Bench]:
    title = "Execution times of distance learning"
    files = rows_of(*CONTEXT_TABLES)
    return [Bench("learning_times", title, run, 6.0, paper=PAPER, files=files)]
