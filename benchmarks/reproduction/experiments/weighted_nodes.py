"""Recall of the top 5 by degree + 100 · egocentric density, in expectation and exactly."""

import numpy as np

from benchmarks.bench import Setting, edges_of, for_each
from benchmarks.reproduction.experiments.influential_nodes import OWN, RUNS
from benchmarks.reproduction.papers import MULTI
from benchmarks.result import FAILS, HOLDS, OTHERWISE, Result, mean
from benchmarks.selections.cases import case_of, objective_of
from benchmarks.selections.defaults import Place, dense_degree, recalls

REACHED, K = 0.95, 5
#: One edge changes an egocentric density by up to 1 in some graph, but by at most 2/d at a node of
#: degree d. So the weight 100 makes the ``global`` sensitivity 101 times that of the degree, and
#: the ``local`` one large only at nodes of few edges.
WEIGHTS = {"degree": "1", "egocentric_density": "100"}
EPSILONS = [float(f"{base}e{power}") for power in range(-2, 2) for base in (1, 2, 5)] + [100.0]


def run(result: Result, setting: Setting, name: str) -> None:
    case, objective = case_of(setting.data, name), objective_of("weighted_sum", WEIGHTS)
    best = np.argsort(-case.utilities(objective), kind="stable")[:K]
    epsilons = setting.fewer(EPSILONS)
    lines = case.lines(objective, K, epsilons, best)
    place, own = Place(case.dataset, case.records), dense_degree(K).body()
    lines[OWN] = [mean(recalls(place, own, e, setting.times(RUNS))) for e in epsilons]
    result.plot(f"{name}, degree + 100 · density, top {K}", "expected recall", epsilons, lines)
    reached = {
        way: next((e for e, (v, _) in zip(epsilons, line, strict=True) if v >= REACHED), None)
        for way, line in lines.items()
    }
    result.table(
        f"{name}: the least ε tried with an expected recall of {REACHED}",
        list(reached),
        [["none of those tried" if e is None else e for e in reached.values()]],
    )
    pairs = zip(lines["local"], lines["global"], strict=True)
    local = reached["local"]
    result.claim(
        f"{name}: the local aggregate is nowhere worse than the global one",
        f"recall of {REACHED} from ε = {local or 'none'} against {reached['global'] or 'none'}",
        HOLDS if all(a >= b - 1e-9 for (a, _), (b, _) in pairs) else FAILS,
        "at some ε the global recall is above the local one",
    )
    result.claim(
        f"{name}: local aggregation is near the answer without privacy for ε up to 1",
        f"recall of {REACHED} from ε = {local or 'none of those tried'}",
        FAILS if local is None else HOLDS if local <= 1 else OTHERWISE,
        "the printed δ of a weighted sum is smaller than what one edge moves; the right one needs "
        "more ε",
    )


BENCHES = for_each(
    "weighted_nodes", "Weighted sum over the nodes of {}", run, MULTI,
    {"github": 4.0, "enron": 3.0, "dblp": 12.0}, edges_of,
)  # fmt: skip
