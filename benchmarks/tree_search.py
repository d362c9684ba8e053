"""The private evolutionary search against ε: fitness, and measure C of its Pareto selections.

Fitness is 3·TPR + 2·TNR of the answer on the whole table: of the search (population 100, 20
selected, 2 generations, depth 3 to 5) by global and local sensitivity, and of ID3. The baseline is
the same search without noise, at ε = 10⁶ by global sensitivity.

Measure C (population 30, 3 selected, 3 generations, depth 4 to 10, 3 outputs, Pareto) is the share
of the private outputs that some output of the search without noise dominates, both worked out
anew in each run: 0 is best.

What is expected is held against 99 % intervals; the status is 1 when a sign flips beyond one.

    python -m benchmarks.tree_search --data DIR [--runs 50] [--c-runs 400] [--quick]
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.graphs import data_option
from benchmarks.tree_data import TreeTable, tree_table
from mechanisms.kernels.executor import Inline
from mechanisms.kernels.forests import confusion
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.selectors import SELECTORS
from mechanisms.sensitivity import Sensitivity
from mechanisms.trees.evolutionary import Search, search
from mechanisms.trees.evolutionary.fitness import Fitness
from mechanisms.trees.forest import forest
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
Floats = NDArray[np.float64]


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
    trees = search(table.records, table.dataset, asked, loss, SystemRandomness(), Inline())
    return rates(table, list(trees))


def fitness(folder: Path, job: tuple[str, str, float, int]) -> float:
    """3·TPR + 2·TNR of one answer; the way is a sensitivity of the search, or id3."""
    name, way, epsilon, _ = job
    table = loaded(folder, name)
    if way == "id3":
        asked = Id3(table.task, 5, "gini", GLOBAL, SELECTORS["permute_and_flip"], True)
        loss = PrivacyLoss.parse(repr(epsilon))
        tree = grow(table.records, table.dataset, asked, loss, SystemRandomness(), Inline())
        found = rates(table, [tree])
    else:
        found = searched(table, "weighted_sum", Sensitivity(way), epsilon, SETTING)
    return float(found[0] @ [3, 2])


def measure_c(folder: Path, job: tuple[str, str, float, int]) -> float:
    """C(without noise, private): how many private outputs are dominated, in shares."""
    name, way, epsilon, _ = job
    table = loaded(folder, name)
    best = searched(table, "pareto", GLOBAL, NO_NOISE, C_SETTING)
    private = searched(table, "pareto", Sensitivity(way), epsilon, C_SETTING)
    dominated = (best[:, None, :] > private[None, :, :]).all(axis=2).any(axis=0)
    return float(dominated.mean())


def all_of(pool: ProcessPoolExecutor, work: Any, jobs: list[Any]) -> dict[Any, Floats]:
    """By (table, way, ε): one value a run."""
    found: dict[Any, list[float]] = {}
    for job, value in zip(jobs, pool.map(work, jobs, chunksize=2), strict=True):
        found.setdefault(job[:3], []).append(value)
    return {key: np.array(values) for key, values in found.items()}


def margin_of(*samples: Floats) -> float:
    """Half of a 99 % interval of a sum or difference of independent means."""
    return 2.58 * float(sum(s.var(ddof=1) / s.size for s in samples)) ** 0.5


def held(text: str, gap: float, margin: float) -> bool:
    ok = gap + margin >= 0
    word = "holds" if gap - margin > 0 else "within noise" if ok else "FAILS"
    print(f"{text}: {gap:+.4f} ± {margin:.4f}  {word}", flush=True)
    return ok


def show_fitness(found: dict[Any, Floats], tables: list[str]) -> bool:
    ok = True
    for table in tables:
        best = found[table, str(GLOBAL), NO_NOISE]
        plain = found[table, "id3", NO_NOISE]
        print(f"\n{table}: fitness 3·TPR + 2·TNR at ε; without noise {best.mean():.3f}, plain ID3 "
              f"{plain.mean():.3f}")  # fmt: skip
        print(f"{'':8}" + "".join(f"{epsilon:>8g}" for epsilon in EPSILONS))
        for way in (str(GLOBAL), str(LOCAL), "id3"):
            means = [found[table, way, epsilon].mean() for epsilon in EPSILONS]
            print(f"{way:8}" + "".join(f"{mean:8.3f}" for mean in means))
    print()
    for table in tables:
        best = found[table, str(GLOBAL), NO_NOISE]
        for epsilon in (e for e in EPSILONS if e >= 0.05):
            local, whole = (found[table, str(s), epsilon] for s in (LOCAL, GLOBAL))
            gap = float(local.mean() - whole.mean())
            ok &= held(f"{table}, ε = {epsilon:g}: local ≥ global", gap, margin_of(local, whole))
            if epsilon >= 0.5:
                gap = float(local.mean() - 0.95 * best.mean())
                text = f"{table}, ε = {epsilon:g}: local ≥ 95 % of the search without noise"
                ok &= held(text, gap, margin_of(local, 0.95 * best))
    return ok


def show_c(found: dict[Any, Floats], tables: list[str]) -> bool:
    ok = True
    for table in tables:
        print(f"\n{table}: mean measure C (0 is best) at ε = {C_EPSILONS}")
        for way in (GLOBAL, LOCAL):
            means = [f"{found[table, str(way), e].mean():8.3f}" for e in C_EPSILONS]
            print(f"{way:8}" + "".join(means))
    print()
    for table in tables:
        whole, local = (
            np.mean([found[table, str(way), e] for e in C_EPSILONS], axis=0)
            for way in (GLOBAL, LOCAL)
        )
        text = f"{table}: mean C over ε is lower for local than for global"
        ok &= held(text, float(whole.mean() - local.mean()), margin_of(whole, local))
    return ok


def plot(found: dict[Any, Floats], tables: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(tables), figsize=(5 * len(tables), 4), squeeze=False)
    for axis, table in zip(axes[0], tables, strict=True):
        for way in (str(GLOBAL), str(LOCAL), "id3"):
            line = [found[table, way, epsilon].mean() for epsilon in EPSILONS]
            axis.semilogx(EPSILONS, line, marker=".", label=way)
        best = found[table, str(GLOBAL), NO_NOISE].mean()
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
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs, on nltcs")
    options = parser.parse_args()
    tables = ["nltcs"] if options.quick else options.tables
    runs, c_runs = options.runs, options.c_runs
    if options.quick:
        runs, c_runs = max(runs // 5, 2), max(c_runs // 10, 2)
    ways = (str(GLOBAL), str(LOCAL), "id3")
    jobs = [(t, w, e, n) for t in tables for w in ways for e in EPSILONS for n in range(runs)]
    jobs += [(t, w, NO_NOISE, n) for t in tables for w in (ways[0], "id3") for n in range(runs)]
    c_jobs = [
        (t, w, e, n) for t in tables for w in ways[:2] for e in C_EPSILONS for n in range(c_runs)
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        found = all_of(pool, partial(fitness, options.data), jobs)
        ok = show_fitness(found, tables)
        c_found = all_of(pool, partial(measure_c, options.data), c_jobs)
        ok &= show_c(c_found, tables)
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        shown = {" ".join(map(str, key)): float(v.mean()) for key, v in found.items()}
        measured = {" ".join(map(str, key)): float(v.mean()) for key, v in c_found.items()}
        text = json.dumps({"fitness": shown, "measure_c": measured})
        (RESULTS / "tree_search.json").write_text(text)
        plot(found, tables, RESULTS / "tree_search.png")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
