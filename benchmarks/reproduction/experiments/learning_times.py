"""Seconds of a processor that each way to learn a whole metric takes, from records to metric.

One column the paper does not have: a query without options in an account that counts in ρ.
"""

from collections.abc import Mapping
from functools import partial
from statistics import median

from app.service.warm import warm
from benchmarks.bench import Bench, Setting, rows_of
from benchmarks.data.tables import read_table
from benchmarks.reproduction.experiments.distances import CONTEXT_TABLES, OWN, OWN_OPTIONS, loss_of
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import FAILS, HOLDS, OTHERWISE, Result, timed
from benchmarks.rounds import processor
from benchmarks.simulation import randomness
from mechanisms.distances.learn import learn
from mechanisms.distances.options import Context, Options, Rule
from mechanisms.distances.plan import plan
from mechanisms.model.context import QueryContext
from mechanisms.model.executor import Inline

REPEATS = 3
WAYS = {
    "baseline": Options(Context.BASELINE, rule=Rule.MEAN_SU),
    "mean_su": Options(Context.MEAN_SU),
    "max_relevance": Options(Context.MAX_RELEVANCE),
    "max_dependency": Options(Context.MAX_DEPENDENCY),
}


def run(result: Result, setting: Setting) -> None:
    warm()
    seconds: dict[str, dict[str, float]] = {}
    for name in setting.fewer(CONTEXT_TABLES):
        table, seconds[name] = read_table(setting.data, name), {}
        for way, options in {**WAYS, OWN: OWN_OPTIONS}.items():
            public, loss = plan(table.dataset, options, None), loss_of(way, 1.0)
            context = QueryContext(table.records, table.dataset, loss, randomness(), Inline())
            work = partial(learn, context, public)
            seconds[name][way] = median(processor(work)() for _ in range(REPEATS))
    result.table(
        "seconds for the whole metric, k = 3, ε = 1",
        ["table", *WAYS, OWN],
        [[name, *map(timed, ways.values())] for name, ways in seconds.items()],
    )
    judge(result, seconds)


def judge(result: Result, seconds: Mapping[str, Mapping[str, float]]) -> None:
    """Whether ``max_dependency`` takes most time of the ways of the paper, table by table."""
    slowest = sum(max(WAYS, key=ways.__getitem__) == "max_dependency" for ways in seconds.values())
    result.claim(
        "max_dependency takes most time, since it counts every subset of k attributes",
        f"on {slowest} of {len(seconds)} tables",
        HOLDS if slowest == len(seconds) else OTHERWISE if slowest else FAILS,
        "compiled kernels share counts between subsets and targets",
    )  # fmt: skip


BENCHES = (
    Bench("learning_times", "Execution times of distance learning", run, 45.0,
          paper=DISTANCES, files=rows_of(*CONTEXT_TABLES)),
)  # fmt: skip
