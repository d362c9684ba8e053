"""Measure C of the Pareto top 3 by degree and egocentric density, in expectation and exactly.

C is the share of the drawn that a node of the true top beats in both utilities, so its expectation
is the sum of the chances of all that are beaten, over k.
"""

from __future__ import annotations

import numpy as np

from benchmarks.inclusion import inclusion
from benchmarks.pareto_measure import EPSILONS, MEMBERS, K, points, true_top
from benchmarks.reproduction.experiment import Experiment, Setting
from benchmarks.reproduction.experiments.influential_nodes import rate
from benchmarks.reproduction.experiments.weighted_nodes import PAPER
from benchmarks.reproduction.result import Result, Verdict, exact
from benchmarks.selections import BOUNDS, cases, objective_of
from mechanisms.model.sensitivity import Sensitivity

#: C below this is "near 0".
SMALL = 0.1


def run(setting: Setting, graph: str) -> Result:
    result = Result()
    (case,) = cases(setting.data, [graph])
    at = points(case)
    best = at[:, true_top(case, at)]
    beaten = np.flatnonzero((best[:, None, :] > at[:, :, None]).all(axis=0).any(axis=-1))
    objective = objective_of("pareto", dict.fromkeys(MEMBERS))
    epsilons = setting.fewer(EPSILONS)
    lines = {}
    for sensitivity in Sensitivity:
        scores = case.scores(objective, sensitivity, K)
        chances = [inclusion(scores, rate(epsilon, K), K, beaten) for epsilon in epsilons]
        lines[str(sensitivity)] = exact([float(each.sum()) / K for each in chances])
    result.plot(f"{graph}, Pareto top {K}", "expected C (0 is best)", epsilons, lines)
    local, whole = ([v for v, _ in lines[name]] for name in ("local", "global"))
    last = len(epsilons) - 1
    gap = max(a - b for a, b in zip(local, whole, strict=True))
    result.claim(
        PAPER, f"{graph}: C of the local Pareto mechanism is not above that of the global one",
        f"at ε = {epsilons[last]:g}: {local[last]:.3g} against {whole[last]:.3g}; at most "
        f"{max(gap, 0.0):.2g} above it at any ε tried",
        Verdict.HOLDS if gap <= 1e-3 else Verdict.OTHERWISE if local[last] < whole[last]
        else Verdict.FAILS,
        "" if gap <= 1e-3 else "at some of the smaller ε the local one is above the global one",
    )  # fmt: skip
    small = next((e for e, v in zip(epsilons, local, strict=True) if v <= SMALL), None)
    result.claim(
        PAPER, f"{graph}: C is near 0 at ε up to 1",
        f"C falls to {SMALL} from ε = {small}" if small else f"C stays above {SMALL}",
        Verdict.HOLDS if small and small <= 1 else Verdict.FAILS,
        "" if small and small <= 1 else "one edge makes a node of degree 1 undominated, so no "
        "admissible δ tells it from the best at such an ε; the printed δ compares with < where ≤ "
        "is needed",
    )  # fmt: skip
    return result


def experiments() -> list[Experiment]:
    def of(graph: str, seconds: float) -> Experiment:
        return Experiment(
            f"pareto_nodes.{graph}", f"Pareto selection of nodes of {graph}", PAPER,
            (f"{graph}.edges.csv.gz",), lambda setting: run(setting, graph), seconds,
        )  # fmt: skip

    return [of(graph, seconds) for graph, seconds in zip(BOUNDS, (4.0, 3.0, 30.0), strict=True)]
