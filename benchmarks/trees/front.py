"""Do trees of the objective ``front`` trade one rate for the other, and is none of them constant?

The area is that below the (TPR, TNR) of an answer, above (0, 0). A tree that labels everything
alike has a rate of 0 and adds nothing to it. The search of ``pareto`` is measured beside it.
"""

import numpy as np

from benchmarks.bench import Bar, Bench, Setting, rows_of
from benchmarks.reproduction.experiments.tree_search import (
    C_SETTING,
    OWN,
    hypervolume,
    searched,
)
from benchmarks.result import Result
from benchmarks.trees.accuracy import LOCAL, TABLES
from benchmarks.trees.tables import tree_table

EPSILON, RUNS = 0.5, 40


def measured(result: Result, setting: Setting) -> None:
    for name in TABLES:
        table = tree_table(setting.data, name)
        for objective in (OWN, "pareto"):
            answers = [
                searched(table, objective, LOCAL, EPSILON, C_SETTING)
                for _ in range(setting.times(RUNS))
            ]
            what = f"{name}, ε = {EPSILON:g}, {objective}"
            result.estimate(f"{what}: area", [hypervolume(one) for one in answers])
            constant = np.mean([(one.min(axis=1) == 0).mean() for one in answers])
            result.measure(f"{what}: share of trees with a rate of 0", float(constant))


BENCHES = (
    Bench(
        "trees.front",
        "How large is the area below three trees of the objective front?",
        measured,
        20.0,
        ("pareto",),
        (Bar(f"nltcs, ε = {EPSILON:g}, {OWN}: area", least=0.6),),
        rows_of(*TABLES),
    ),
)
