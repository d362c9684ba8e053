"""The private evolutionary search: fitness of weighted sums, and measure C of Pareto selections.

Fitness is 3·TPR + 2·TNR of the answer on the whole table: of the search (population 100, 20
selected, 2 generations, depth 3 to 5) by global and local sensitivity, and of ID3. The baseline is
the same search without noise, at ε = 10⁶ by global sensitivity.

Measure C (population 30, 3 selected, 3 generations, depth 4 to 10, 3 outputs, Pareto) is the share
of the private outputs that some output of the search without noise dominates, all worked out anew
in each run: 0 is best.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Setting, for_each, rows_of
from benchmarks.data.tables import Table
from benchmarks.reproduction.papers import MULTI
from benchmarks.result import Result, mean
from benchmarks.simulation import randomness
from benchmarks.trees.accuracy import EPSILONS, GAIN, GLOBAL, LOCAL, NO_NOISE, TABLES
from benchmarks.trees.tables import POSITIVE, grown, tree_table
from mechanisms.kernels.forests import confusion
from mechanisms.model.context import QueryContext
from mechanisms.model.executor import Inline
from mechanisms.model.forest import forest
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.trees.evolutionary import Search, search
from mechanisms.trees.evolutionary.fitness import Fitness
from mechanisms.trees.evolutionary.front import Front

RUNS, C_RUNS = 20, 60
#: Differences below these count as none: of the fitness, which is at most 5; of the fitness against
#: private ID3, where the paper prints a gain of only 6 %; and of the measure C.
EQUAL_FITNESS, EQUAL_GAIN, EQUAL_C = 0.3, 0.1, 0.05
#: The paper prints gains of fitness over private ID3 from 6 % to 21 %. This is the least of them.
LEAST_GAIN = 6
C_EPSILONS = (0.5, 1.0, 2.0)
WEIGHTS = {"true_positive_rate": Decimal(3), "true_negative_rate": Decimal(2)}
SETTING = {"population": 100, "selected": 20, "generations": 2, "outputs": 1}
SETTING |= {"initial_depth": 3, "max_depth": 5}
C_SETTING = {"population": 30, "selected": 3, "generations": 3, "outputs": 3}
C_SETTING |= {"initial_depth": 4, "max_depth": 10}
SEARCHES = (GLOBAL, LOCAL)
#: Two variants of private ID3 to compare with, this service's and the paper's baseline. Each has a
#: split criterion and a sensitivity.
BASELINES = {"id3": ("gini", GLOBAL), "id3 of the paper": (GAIN, LOCAL)}
#: The search of this service by the objective ``front``, which the paper does not have.
OWN = "front"
NAMES = {
    "id3": "private ID3, Gini, global",
    "id3 of the paper": "private ID3, information gain, local",
    OWN: "this service, objective front",
}
Floats = NDArray[np.float64]
#: By method and ε: the fitness of the trees in every run. A method is a sensitivity of the search,
#: a baseline, or OWN.
Runs = Mapping[tuple[str, float], list[float]]


def rates(table: Table, trees: list[Mapping[str, Any]]) -> Floats:
    """(TPR, TNR) of each tree on all rows."""
    flat = forest(trees, table.domain, table.task.classes.name, POSITIVE[table.name])
    counts = confusion(table.records, flat)
    return np.stack(
        [counts.true_positives / counts.positives, counts.true_negatives / counts.negatives], axis=1
    )


def searched(table: Table, objective: Any, way: str, epsilon: float, setting: Any) -> Floats:
    plan = Search(
        task=table.task,
        fitness=Front() if objective == OWN else Fitness(objective, WEIGHTS, Sensitivity(way)),
        selector=SELECTORS["permute_and_flip"],
        positive_class=POSITIVE[table.name],
        **setting,
    )
    loss = PrivacyLoss.parse(repr(epsilon))
    trees = search(QueryContext(table.records, table.dataset, loss, randomness(), Inline()), plan)
    return rates(table, list(trees))


def fitness(folder: Path, name: str, way: str, epsilon: float) -> float:
    """3·TPR + 2·TNR of one answer. ``way``: a sensitivity of the search, a baseline or OWN."""
    table = tree_table(folder, name)
    if way in BASELINES:
        how = 5, *BASELINES[way], epsilon, randomness(), Inline()
        answer = rates(table, [grown(table, table.records, *how)])
    elif way == OWN:
        answer = searched(table, OWN, LOCAL, epsilon, SETTING)
    else:
        answer = searched(table, "weighted_sum", way, epsilon, SETTING)
    return float(answer[0] @ [3, 2])


def measures(folder: Path, name: str) -> dict[tuple[str, float], tuple[float, float]]:
    """C(without noise, private) and the hypervolume of the private outputs, by way and ε.

    C is the share of private outputs that some output of a search without noise dominates. One
    search without noise is compared with one private search of each way and ε.
    """
    table = tree_table(folder, name)
    best = searched(table, "pareto", GLOBAL, NO_NOISE, C_SETTING)
    values = {}
    for way, epsilon in product((*SEARCHES, OWN), C_EPSILONS):
        objective = OWN if way == OWN else "pareto"
        private = searched(table, objective, LOCAL if way == OWN else way, epsilon, C_SETTING)
        dominated = (best[:, None, :] > private[None, :, :]).all(axis=2).any(axis=0)
        values[way, epsilon] = float(dominated.mean()), hypervolume(private)
    return values


def hypervolume(points: Floats) -> float:
    """The area below the points, (points, 2), above the reference (0, 0)."""
    area = highest = 0.0
    for across, up in sorted(map(tuple, points.tolist()), reverse=True):
        area += across * max(up - highest, 0.0)
        highest = max(highest, up)
    return area


def weighted(result: Result, setting: Setting, name: str) -> None:
    epsilons, times = setting.fewer(EPSILONS), setting.times(RUNS)
    places = [
        *product((*SEARCHES, *BASELINES, OWN), epsilons),
        (GLOBAL, NO_NOISE),
        ("id3", NO_NOISE),
    ]
    runs = {
        (way, e): [fitness(setting.data, name, way, e) for _ in range(times)] for way, e in places
    }
    lines = {
        NAMES.get(way, way): [mean(runs[way, e]) for e in epsilons]
        for way in (*SEARCHES, *BASELINES, OWN)
    }
    best, plain = mean(runs[GLOBAL, NO_NOISE]), mean(runs["id3", NO_NOISE])
    lines["search without noise"] = [best] * len(epsilons)
    lines["plain ID3"] = [plain] * len(epsilons)
    result.plot(f"{name}, search of trees", "fitness 3·TPR + 2·TNR", epsilons, lines)

    def draw(way: str, epsilon: float) -> float:
        return fitness(setting.data, name, way, epsilon)

    judge(result, setting, name, runs, draw)
    result.stored["runs"] = {f"{way} {e:g}": values for (way, e), values in runs.items()}


def judge(
    result: Result, setting: Setting, name: str, runs: Runs, draw: Callable[[str, float], float]
) -> None:
    """From the runs of each way at each ε; ``draw`` is the fitness of one further run."""
    epsilons = sorted(e for way, e in runs if way == LOCAL)
    low, high = epsilons[0], epsilons[-1]
    middle = [e for e in epsilons if e >= 0.05]
    worst = min(middle, key=lambda e: float(np.mean(gaps(runs, LOCAL, GLOBAL, e))))
    setting.compare(
        result,
        f"{name}: the local aggregate finds better trees than the global one at ε from 0.05 on",
        lambda value, half: f"by {value:+.2f} ± {half:.2f} at worst, at ε = {worst:g}",
        gaps(runs, LOCAL, GLOBAL, worst),
        lambda: draw(LOCAL, worst) - draw(GLOBAL, worst),
        EQUAL_FITNESS,
        "at that ε noise decides for both",
    )
    setting.compare(
        result,
        f"{name}: the local aggregate comes near the search without noise",
        lambda value, half: f"{value:+.2f} ± {half:.2f} from it at ε = {high:g}",
        np.subtract(runs[LOCAL, high], runs[GLOBAL, NO_NOISE]).tolist(),
        lambda: draw(LOCAL, high) - draw(GLOBAL, NO_NOISE),
        EQUAL_FITNESS,
        "it is less fit at the largest ε tried",
        no_less=True,
    )
    for baseline in BASELINES:
        judge_baseline(result, setting, name, baseline, runs, draw)

    def short_of_a_fifth(first: float, last: float, perfect: float) -> float:
        """A fifth of the way to the best, less the rise from the least ε to the largest."""
        return 0.2 * (perfect - first) - (last - first)

    ends = (GLOBAL, low), (GLOBAL, high), (GLOBAL, NO_NOISE)
    setting.compare(
        result,
        f"{name}: the global aggregate stays near chance at every ε",
        lambda value, half: (
            f"a fifth of the way to the best exceeds its rise by {value:+.2f} ± {half:.2f}"
        ),
        list(map(short_of_a_fifth, *(runs[end] for end in ends))),
        lambda: short_of_a_fifth(*(draw(*end) for end in ends)),
        EQUAL_FITNESS,
        "it rises with ε",
    )


def judge_baseline(
    result: Result,
    setting: Setting,
    name: str,
    baseline: str,
    runs: Runs,
    draw: Callable[[str, float], float],
) -> None:
    """Figure 2: the local search against private ID3, at the ε at which it is best beside it."""
    epsilons = [e for way, e in runs if way == LOCAL]
    best = max(epsilons, key=lambda e: float(np.mean(gaps(runs, LOCAL, baseline, e))))
    whole = float(np.mean(runs[baseline, best]))

    def seen(gain: float, half: float) -> str:
        return f"by up to {gain:+.2f} ± {half:.2f}, {100 * gain / whole:+.0f} %, at ε = {best:g}"

    if name == "acs":
        setting.compare(
            result,
            f"acs: the local search is not above {NAMES[baseline]} (the exception of Figure 2)",
            lambda value, half: seen(-value, half),
            gaps(runs, baseline, LOCAL, best),
            lambda: draw(baseline, best) - draw(LOCAL, best),
            EQUAL_GAIN,
            "it is fitter at that ε",
            no_less=True,
        )
        return
    setting.compare(
        result,
        f"{name}: the local search is 6 to 21 % fitter than {NAMES[baseline]} (Figure 2)",
        seen,
        gaps(runs, LOCAL, baseline, best),
        lambda: draw(LOCAL, best) - draw(baseline, best),
        EQUAL_GAIN,
        "by less than 6 %, if at all",
        enough=LEAST_GAIN * whole / 100,
    )


def gaps(runs: Runs, way: str, other: str, epsilon: float) -> list[float]:
    """How much fitter one way is than another, run by run."""
    values: list[float] = np.subtract(runs[way, epsilon], runs[other, epsilon]).tolist()
    return values


def pareto(result: Result, setting: Setting, name: str) -> None:
    # ``--full`` runs five times as many repetitions, because ``rank_comparisons`` tests on them.
    times = setting.times(C_RUNS) * (5 if setting.full else 1)
    both = [measures(setting.data, name) for _ in range(times)]
    runs, areas = (
        {place: np.array([one[place][which] for one in both]) for place in both[0]}
        for which in (0, 1)
    )
    lines, volumes = (
        {NAMES.get(w, w): [mean(of[w, e]) for e in C_EPSILONS] for w in (*SEARCHES, OWN)}
        for of in (runs, areas)
    )
    result.plot(f"{name}, Pareto search", "measure C (0 is best)", list(C_EPSILONS), lines)
    result.plot(f"{name}, Pareto search", "hypervolume above (0, 0)", list(C_EPSILONS), volumes)

    def draw() -> float:
        one = measures(setting.data, name)
        return float(np.mean([one[GLOBAL, e][0] - one[LOCAL, e][0] for e in C_EPSILONS]))

    def last() -> float:
        return measures(setting.data, name)[LOCAL, C_EPSILONS[-1]][0]

    setting.compare(
        result,
        f"{name}: C of the local Pareto search is below that of the global one",
        lambda value, half: f"by {value:+.3f} ± {half:.3f}, mean over ε",
        np.mean([runs[GLOBAL, e] - runs[LOCAL, e] for e in C_EPSILONS], axis=0).tolist(),
        draw,
        EQUAL_C,
        "both are selected by dominance, whose sensitivity grows with the candidates",
    )
    judge_near_zero(result, setting, name, runs[LOCAL, C_EPSILONS[-1]].tolist(), last)
    result.stored["runs"] = {f"{way} {e:g}": v.tolist() for (way, e), v in runs.items()}


def judge_near_zero(
    result: Result, setting: Setting, name: str, runs: list[float], draw: Callable[[], float]
) -> None:
    """From measure C at the largest ε; ``draw`` is that of one further run."""
    setting.compare(
        result,
        f"{name}: C of the local Pareto search is near 0",
        lambda value, half: f"{-value:.2f} ± {half:.2f} at ε = {C_EPSILONS[-1]:g}",
        [-one for one in runs],
        lambda: -draw(),
        EQUAL_C,
        "the paper spends ε once a generation and compares weakly, so ties count; with ε divided "
        "over all draws the noise is larger",
        no_less=True,
    )


BENCHES = (
    *for_each("tree_search", "Weighted search of trees on {}", weighted, MULTI,
              dict.fromkeys(TABLES, 25.0), rows_of),
    *for_each("tree_pareto", "Pareto search of trees on {}", pareto, MULTI,
              dict.fromkeys(TABLES, 20.0), rows_of),
)  # fmt: skip
