"""Recall of the top 5 by degree + 100 · egocentric density, in expectation and exactly."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bench import Bench, Setting, edges_of
from benchmarks.reproduction.experiments.influential_nodes import rate
from benchmarks.result import Result, Verdict, exact
from benchmarks.selections.cases import BOUNDS, cases, objective_of
from benchmarks.selections.inclusion import inclusion
from mechanisms.model.sensitivity import Sensitivity

PAPER = "Multi-objective selection (PrivPareto, PrivAgg)"
REACHED, K = 0.95, 5
#: One density is moved by up to 1 anywhere in the universe, by 2/d at a node of degree d: the
#: weight of 100 makes ``global`` 101 times as coarse for everyone, ``local`` only for nodes of few
#: edges.
WEIGHTS = {"degree": "1", "egocentric_density": "100"}
EPSILONS = [float(f"{base}e{power}") for power in range(-2, 2) for base in (1, 2, 5)] + [100.0]


def run(setting: Setting, graph: str) -> Result:
    result = Result()
    (case,) = cases(setting.data, [graph])
    objective = objective_of("weighted_sum", WEIGHTS)
    best = np.argsort(-case.utilities(objective), kind="stable")[:K]
    epsilons = setting.fewer(EPSILONS)
    lines = {}
    for sensitivity in Sensitivity:
        scores = case.scores(objective, sensitivity, K)
        chances = [inclusion(scores, rate(epsilon, K), K, best) for epsilon in epsilons]
        lines[str(sensitivity)] = exact([float(each.sum()) / K for each in chances])
    result.plot(f"{graph}, degree + 100 · density, top {K}", "expected recall", epsilons, lines)
    reached = {
        name: next((e for e, (v, _) in zip(epsilons, line, strict=True) if v >= REACHED), None)
        for name, line in lines.items()
    }
    result.table(
        f"{graph}: the least ε tried with an expected recall of {REACHED}",
        list(reached),
        [["none of those tried" if e is None else (e, 0.0) for e in reached.values()]],
    )
    ours, whole = lines["local"], lines["global"]
    never = all(a >= b - 1e-9 for (a, _), (b, _) in zip(ours, whole, strict=True))
    result.claim(
        PAPER, f"{graph}: the local aggregate is nowhere worse than the global one",
        f"recall of {REACHED} from ε = {reached['local'] or 'none'} against "
        f"{reached['global'] or 'none'}",
        Verdict.HOLDS if never else Verdict.FAILS,
        "" if never else "at some ε the global recall is above the local one",
    )  # fmt: skip
    good = reached["local"] is not None and reached["local"] <= 1
    other = reached["local"] is not None
    result.claim(
        PAPER, f"{graph}: local aggregation is near the answer without privacy for ε up to 1",
        f"recall of {REACHED} from ε = {reached['local'] or 'none of those tried'}",
        Verdict.HOLDS if good else Verdict.OTHERWISE if other else Verdict.FAILS,
        "" if good else "the printed δ of a weighted sum is smaller than what one edge moves; the "
        "right one needs more ε",
    )  # fmt: skip
    return result


def experiments() -> list[Bench]:
    return [
        Bench(f"weighted_nodes.{graph}", f"Weighted sum over the nodes of {graph}",
              partial(run, graph=graph), seconds, paper=PAPER, files=edges_of(graph))
        for graph, seconds in zip(BOUNDS, (4.0, 3.0, 12.0), strict=True)
    ]  # fmt: skip
