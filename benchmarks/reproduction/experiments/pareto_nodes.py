"""Measure C of the Pareto top 3 by degree and egocentric density, in expectation and exactly.

C is the share of the drawn that a node of the true top beats in both utilities, so its expectation
is the sum of the chances of all that are beaten, over k. Ties of the Pareto score go to the larger
degree, then the larger density, then the public order.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.bench import Bench, Setting, edges_of
from benchmarks.reproduction.experiments.influential_nodes import rate
from benchmarks.reproduction.experiments.weighted_nodes import PAPER
from benchmarks.result import Result, Verdict, exact
from benchmarks.selections.cases import BOUNDS, Case, cases, objective_of
from benchmarks.selections.inclusion import inclusion
from mechanisms.model.sensitivity import Integers, Sensitivity

#: C below this is "near 0".
SMALL = 0.1
K = 3
MEMBERS = ("degree", "egocentric_density")
EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]


def points(case: Case) -> Integers:
    """The utilities of all nodes, shape (members, nodes), each on its own grid."""
    return np.stack([case.utilities(objective_of("single", {name: None})) for name in MEMBERS])


def true_top(case: Case, at: Integers) -> Integers:
    """The K best nodes by Pareto score, ties as above."""
    score = case.utilities(objective_of("pareto", dict.fromkeys(MEMBERS)))
    # The last key of lexsort comes first; it keeps the public order among equals.
    return np.lexsort((*-at[::-1], -score))[:K]


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


def experiments() -> list[Bench]:
    return [
        Bench(f"pareto_nodes.{graph}", f"Pareto selection of nodes of {graph}",
              partial(run, graph=graph), seconds, paper=PAPER, files=edges_of(graph))
        for graph, seconds in zip(BOUNDS, (4.0, 3.0, 30.0), strict=True)
    ]  # fmt: skip
