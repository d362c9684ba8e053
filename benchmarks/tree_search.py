"""The private evolutionary search against ε: fitness, and measure C of its Pareto selections.

Fitness is 3·TPR + 2·TNR of the answer on the whole table: of the search (population 100, 20
selected, 2 generations, depth 3 to 5) by global and local sensitivity, and of ID3. The baseline is
the same search without noise, at ε = 10⁶ by global sensitivity.

Measure C (population 30, 3 selected, 3 generations, depth 4 to 10, 3 outputs, Pareto) is the share
of the private outputs that some output of the search without noise dominates, all worked out anew
in each run: 0 is best.

What is expected is held against 99 % intervals; the status is 1 when a sign flips beyond one. Every
value goes to ``results/tree_search.csv``; ``--saved`` judges that file again.

    python -m benchmarks.tree_search --data DIR [--runs 50] [--c-runs 400] [--workers 2]
    python -m benchmarks.tree_search --data DIR --saved
"""

from __future__ import annotations

import csv
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.graphs import data_option
from benchmarks.simulation import randomness
from benchmarks.tree_data import TreeTable, tree_table
from mechanisms.kernels.forests import confusion
from mechanisms.model.executor import Inline
from mechanisms.model.forest import forest
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.trees.evolutionary import Search, search
from mechanisms.trees.evolutionary.fitness import Fitness
from mechanisms.trees.id3 import Id3, grow

RESULTS = Path(__file__).parent / "results"
TABLES = ("adult", "nltcs", "acs")
EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0)
C_EPSILONS = (0.5, 1.0, 2.0)
NO_NOISE = 1e6
WEIGHTS = {"true_positive_rate": Decimal(3), "true_negative_rate": Decimal(2)}
GLOBAL, LOCAL = Sensitivity.GLOBAL, Sensitivity.LOCAL
SETTING = {"population": 100, "selected": 20, "generations": 2, "outputs": 1}
SETTING |= {"initial_depth": 3, "max_depth": 5}
C_SETTING = {"population": 30, "selected": 3, "generations": 3, "outputs": 3}
C_SETTING |= {"initial_depth": 4, "max_depth": 10}
SEARCHES = (str(GLOBAL), str(LOCAL))
Floats = NDArray[np.float64]
#: Measure, table, way, ε, run, value.
Row = tuple[str, str, str, float, int, float]
Found = dict[tuple[str, str, str, float], Floats]


@cache
def loaded(folder: Path, name: str) -> TreeTable:
    return tree_table(folder, name)


def rates(table: TreeTable, trees: list[Mapping[str, Any]]) -> Floats:
    """(TPR, TNR) of each tree on all rows."""
    flat = forest(trees, table.domain, table.task.classes.name, table.positive_class)
    found = confusion(table.records, flat)
    return np.stack(
        [found.true_positives / found.positives, found.true_negatives / found.negatives], axis=1
    )


def searched(
    table: TreeTable, objective: Any, sensitivity: Sensitivity, epsilon: float, setting: Any
) -> Floats:
    asked = Search(
        task=table.task,
        fitness=Fitness(objective, WEIGHTS, sensitivity),
        selector=SELECTORS["permute_and_flip"],
        positive_class=table.positive_class,
        **setting,
    )
    loss = PrivacyLoss.parse(repr(epsilon))
    trees = search(table.records, table.dataset, asked, loss, randomness(), Inline())
    return rates(table, list(trees))


def fitness(folder: Path, name: str, way: str, epsilon: float, number: int) -> list[Row]:
    """3·TPR + 2·TNR of one answer; the way is a sensitivity of the search, or id3."""
    table = loaded(folder, name)
    if way == "id3":
        asked = Id3(table.task, 5, "gini", GLOBAL, SELECTORS["permute_and_flip"], True)
        loss = PrivacyLoss.parse(repr(epsilon))
        tree = grow(table.records, table.dataset, asked, loss, randomness(), Inline())
        found = rates(table, [tree])
    else:
        found = searched(table, "weighted_sum", Sensitivity(way), epsilon, SETTING)
    return [("fitness", name, way, epsilon, number, float(found[0] @ [3, 2]))]


def measure_c(folder: Path, name: str, number: int) -> list[Row]:
    """C(without noise, private): the shares of private outputs that are dominated.

    One search without noise is held against one private search of every way and ε.
    """
    table = loaded(folder, name)
    best = searched(table, "pareto", GLOBAL, NO_NOISE, C_SETTING)
    rows: list[Row] = []
    for way, epsilon in product(SEARCHES, C_EPSILONS):
        private = searched(table, "pareto", Sensitivity(way), epsilon, C_SETTING)
        dominated = (best[:, None, :] > private[None, :, :]).all(axis=2).any(axis=0)
        rows.append(("c", name, way, epsilon, number, float(dominated.mean())))
    return rows


def measured(
    folder: Path, tables: list[str], runs: int, c_runs: int, workers: int, path: Path
) -> Found:
    """All values, saved as they come."""
    places = [(way, epsilon) for way in (*SEARCHES, "id3") for epsilon in EPSILONS]
    places += [(way, NO_NOISE) for way in (str(GLOBAL), "id3")]
    jobs = [
        partial(fitness, folder, table, way, epsilon, number)
        for number in range(runs)
        for table in tables
        for way, epsilon in places
    ]
    jobs += [partial(measure_c, folder, table, n) for n in range(c_runs) for table in tables]
    with ProcessPoolExecutor(workers) as pool, path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["measure", "table", "way", "epsilon", "run", "value"])
        for rows in pool.map(_called, jobs, chunksize=4):
            writer.writerows(rows)
    return saved(path)


def _called(job: Callable[[], list[Row]]) -> list[Row]:
    return job()


def saved(path: Path) -> Found:
    """By (measure, table, way, ε): one value a run."""
    found: dict[tuple[str, str, str, float], list[float]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            key = line["measure"], line["table"], line["way"], float(line["epsilon"])
            found.setdefault(key, []).append(float(line["value"]))
    return {key: np.array(values) for key, values in found.items()}


def margin_of(*samples: Floats) -> float:
    """Half of a 99 % interval of a sum or difference of independent means."""
    return 2.58 * float(sum(s.var(ddof=1) / s.size for s in samples)) ** 0.5


def held(text: str, gap: float, margin: float) -> bool:
    ok = gap + margin >= 0
    word = "holds" if gap - margin > 0 else "within noise" if ok else "FAILS"
    print(f"{text}: {gap:+.4f} ± {margin:.4f}  {word}", flush=True)
    return ok


def show_fitness(found: Found, tables: list[str]) -> bool:
    ok = True

    def of(table: str, way: str, epsilon: float) -> Floats:
        return found["fitness", table, way, epsilon]

    for table in tables:
        best, plain = (of(table, way, NO_NOISE).mean() for way in (str(GLOBAL), "id3"))
        print(f"\n{table}: fitness 3·TPR + 2·TNR at ε; without noise {best:.3f}, plain ID3 "
              f"{plain:.3f}")  # fmt: skip
        print(f"{'':8}" + "".join(f"{epsilon:>8g}" for epsilon in EPSILONS))
        for way in (*SEARCHES, "id3"):
            means = [of(table, way, epsilon).mean() for epsilon in EPSILONS]
            print(f"{way:8}" + "".join(f"{mean:8.3f}" for mean in means))
    print()
    for table in tables:
        best = of(table, str(GLOBAL), NO_NOISE)
        for epsilon in (e for e in EPSILONS if e >= 0.05):
            local, whole = (of(table, str(s), epsilon) for s in (LOCAL, GLOBAL))
            gap = float(local.mean() - whole.mean())
            ok &= held(f"{table}, ε = {epsilon:g}: local ≥ global", gap, margin_of(local, whole))
            if epsilon >= 0.5:
                gap = float(local.mean() - 0.95 * best.mean())
                text = f"{table}, ε = {epsilon:g}: local ≥ 95 % of the search without noise"
                ok &= held(text, gap, margin_of(local, 0.95 * best))
        # Flat: on the way from ε = 0.01 to 2 global goes less than a fifth of that to the best.
        low, high = (of(table, str(GLOBAL), epsilon) for epsilon in (EPSILONS[0], EPSILONS[-1]))
        gap = float(0.2 * best.mean() + 0.8 * low.mean() - high.mean())
        text = f"{table}: global stays flat"
        ok &= held(text, gap, margin_of(0.2 * best, 0.8 * low, high))
    return ok


def show_c(found: Found, tables: list[str]) -> bool:
    ok = True
    for table in tables:
        print(f"\n{table}: mean measure C (0 is best) at ε = {C_EPSILONS}")
        for way in SEARCHES:
            means = [f"{found['c', table, way, e].mean():8.3f}" for e in C_EPSILONS]
            print(f"{way:8}" + "".join(means))
    print()
    every = []
    for table in tables:
        whole, local = (
            np.mean([found["c", table, way, e] for e in C_EPSILONS], axis=0) for way in SEARCHES
        )
        # A run holds both against one search without noise: the difference is paired.
        gained = whole - local
        text = f"{table}: mean C over ε is lower for local than for global"
        ok &= held(text, float(gained.mean()), margin_of(gained))
        every.append(gained)
    pooled = np.concatenate(every)
    text = f"all {pooled.size} runs: mean C over ε is lower for local than for global"
    ok &= held(text, float(pooled.mean()), margin_of(pooled))
    return ok


def plot(found: Found, tables: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(tables), figsize=(5 * len(tables), 4), squeeze=False)
    for axis, table in zip(axes[0], tables, strict=True):
        for way in (*SEARCHES, "id3"):
            line = [found["fitness", table, way, epsilon].mean() for epsilon in EPSILONS]
            axis.semilogx(EPSILONS, line, marker=".", label=way)
        best = found["fitness", table, str(GLOBAL), NO_NOISE].mean()
        axis.axhline(best, color="grey", linestyle=":", label="search without noise")
        axis.set_title(table)
        axis.set_xlabel("ε")
        axis.set_ylabel("3·TPR + 2·TNR")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path)
    print(f"wrote {path}")


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--runs", type=int, default=50, help="searches a point of the fitness")
    parser.add_argument("--c-runs", type=int, default=400, help="searches a point of measure C")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--saved", action="store_true", help="judge the last run again")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "tree_search.csv"
    if options.saved:
        found = saved(path)
    else:
        asked = options.data, options.tables, options.runs, options.c_runs, options.workers
        found = measured(*asked, path)
    tables = [t for t in TABLES if any(table == t for _, table, *_ in found)]
    ok = show_fitness(found, tables)
    ok &= show_c(found, tables)
    plot(found, tables, RESULTS / "tree_search.png")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
