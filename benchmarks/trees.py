"""Accuracy of private ID3 on held-out rows against ε: what each sensitivity and criterion buys.

Runs of 10-fold cross-validation, for depth 2 and 5, on adult, nltcs and acs; the baseline is the
same tree at ε = 10⁶, which is plain ID3. Prints and plots mean accuracies, then holds what is
expected against 99 % intervals of paired differences: an expectation fails when its sign flips
beyond the interval, and the status is 1.

    python -m benchmarks.trees --data DIR [--runs 10] [--quick] [--tables acs nltcs]
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.graphs import data_option
from benchmarks.tree_data import TreeTable, accuracy, tree_table
from mechanisms.kernels.executor import Inline
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.selectors import SELECTORS
from mechanisms.sensitivity import Sensitivity
from mechanisms.trees.id3 import Id3, grow

RESULTS = Path(__file__).parent / "results"
TABLES = ("adult", "nltcs", "acs")
DEPTHS = (2, 5)
EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0)
CRITERIA = ("information_gain", "gini")
NO_NOISE = 1e6
FOLDS = 10

GAIN, GINI = CRITERIA
GLOBAL, LOCAL, FLATTENED, SHIFTED = (str(name) for name in Sensitivity)


@dataclass(frozen=True)
class Cell:
    """One place of the tables."""

    table: str
    depth: int
    criterion: str
    sensitivity: str
    epsilon: float


@dataclass(frozen=True)
class Expected:
    """``better`` is above ``worse`` by at least ``gap`` (percentage points, may be negative)."""

    better: Cell
    worse: Cell
    gap: float = 0.0

    def __str__(self) -> str:
        one, other = self.better, self.worse
        sides = [f"{c.sensitivity} {c.criterion}" for c in (one, other)]
        by = f" {self.gap:+g} points" if self.gap else ""
        return f"{one.table} depth {one.depth}, ε = {one.epsilon:g}: {sides[0]} ≥ {sides[1]}{by}"


def expectations(tables: list[str]) -> Iterator[Expected]:
    """What the mathematics and the papers lead one to expect, as pairs of cells."""

    def pair(table: str, depth: int, epsilon: float, a: str, b: str, gap: float = 0) -> Expected:
        make = partial(Cell, table, depth, GAIN)
        return Expected(make(a, epsilon), make(b, epsilon), gap)

    for depth, most in ((5, 0.1), (2, 0.05)):
        for epsilon in (e for e in EPSILONS if e <= most):
            yield pair("acs", depth, epsilon, SHIFTED, GLOBAL)
    for depth in DEPTHS:
        for epsilon in (0.05, 0.1):
            yield pair("nltcs", depth, epsilon, SHIFTED, GLOBAL)
            yield pair("nltcs", depth, epsilon, LOCAL, GLOBAL)
        for epsilon in (0.5, 1.0, 2.0):
            # Local dampening inverts the order of attributes where its utilities are large.
            yield pair("acs", depth, epsilon, GLOBAL, LOCAL)
        yield pair("acs", depth, 0.01, SHIFTED, GLOBAL)
        for table in tables:
            for epsilon in EPSILONS:
                yield pair(table, depth, epsilon, SHIFTED, LOCAL)
                yield pair(table, depth, epsilon, FLATTENED, GLOBAL, -1)
                yield pair(table, depth, epsilon, GLOBAL, FLATTENED, -1)
                gini = partial(Cell, table, depth, GINI, epsilon=epsilon)
                gain = Cell(table, depth, GAIN, LOCAL, epsilon)
                yield Expected(gini(sensitivity=GLOBAL), gain)
                yield Expected(gini(sensitivity=GLOBAL), gini(sensitivity=SHIFTED), -1)
                yield Expected(gini(sensitivity=GLOBAL), gini(sensitivity=LOCAL), -1)
    for epsilon in (0.01, 0.05):
        yield pair("acs", 5, epsilon, LOCAL, GLOBAL)
    for epsilon in (0.5, 1.0, 2.0):
        yield pair("acs", 5, epsilon, SHIFTED, LOCAL)


@cache
def loaded(folder: Path, name: str) -> TreeTable:
    return tree_table(folder, name)


def run(folder: Path, cell: Cell, number: int) -> list[float]:
    """Accuracies on the held-out folds of one run; the folds of a run are those of every cell."""
    table = loaded(folder, cell.table)
    order = np.random.default_rng(number).permutation(table.rows)
    folds = np.array_split(order, FOLDS)
    asked = Id3(
        table.task,
        cell.depth,
        cell.criterion,
        Sensitivity(cell.sensitivity),
        SELECTORS["permute_and_flip"],
        True,
    )
    found = []
    for i, held_out in enumerate(folds):
        rest = np.concatenate(folds[:i] + folds[i + 1 :])
        tree = grow(
            table.taken(rest),
            table.dataset,
            asked,
            PrivacyLoss.parse(repr(cell.epsilon)),
            SystemRandomness(),
            Inline(),
        )
        found.append(accuracy(tree, table.taken(held_out), table.task))
    return found


def cells(tables: list[str]) -> list[Cell]:
    found = [
        Cell(table, depth, criterion, str(sensitivity), epsilon)
        for table in tables
        for depth in DEPTHS
        for criterion in CRITERIA
        for sensitivity in Sensitivity
        for epsilon in EPSILONS
    ]
    plain = [Cell(t, d, c, GLOBAL, NO_NOISE) for t in tables for d in DEPTHS for c in CRITERIA]
    return found + plain


def measured(
    folder: Path, wanted: list[Cell], runs: int, workers: int
) -> dict[Cell, NDArray[np.float64]]:
    """Accuracies in percent, shape (runs, folds), of every cell."""
    jobs = [(cell, number) for cell in wanted for number in range(runs)]
    with ProcessPoolExecutor(workers) as pool:
        found = pool.map(partial(_job, folder), jobs, chunksize=1)
        by_job = dict(zip(jobs, found, strict=True))
    return {
        cell: 100 * np.array([by_job[cell, number] for number in range(runs)]) for cell in wanted
    }


def _job(folder: Path, job: tuple[Cell, int]) -> list[float]:
    return run(folder, *job)


def verdict(expected: Expected, found: dict[Cell, NDArray[np.float64]]) -> tuple[bool, str]:
    """Whether the paired difference is not below the gap beyond a 99 % interval of the folds."""
    gained = (found[expected.better] - found[expected.worse]).ravel()
    margin = 2.58 * float(gained.std(ddof=1)) / gained.size**0.5
    ok = bool(gained.mean() + margin >= expected.gap)
    clear = bool(gained.mean() - margin > expected.gap)
    word = "holds" if clear else "within noise" if ok else "FAILS"
    return ok, f"{expected}: {gained.mean():+.2f} ± {margin:.2f}  {word}"


def table_of(found: dict[Cell, NDArray[np.float64]], tables: list[str]) -> dict[str, Any]:
    """Print mean accuracies; the same as JSON."""
    shown: dict[str, Any] = {}
    for table in tables:
        for depth in DEPTHS:
            print(f"\n{table}, depth {depth}: accuracy in % at ε")
            print(f"{'':28}" + "".join(f"{epsilon:>8g}" for epsilon in EPSILONS) + "   plain")
            for criterion in CRITERIA:
                plain = float(found[Cell(table, depth, criterion, GLOBAL, NO_NOISE)].mean())
                for sensitivity in Sensitivity:
                    line = [
                        float(found[Cell(table, depth, criterion, str(sensitivity), e)].mean())
                        for e in EPSILONS
                    ]
                    shown[f"{table} {depth} {criterion} {sensitivity}"] = [*line, plain]
                    values = "".join(f"{value:8.2f}" for value in [*line, plain])
                    print(f"{criterion:18}{sensitivity:10}{values}", flush=True)
    return shown


def plot(shown: dict[str, list[float]], tables: list[str], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        len(tables), len(DEPTHS) * len(CRITERIA), figsize=(16, 3.4 * len(tables)), squeeze=False
    )
    for row, table in zip(axes, tables, strict=True):
        places = [(depth, criterion) for depth in DEPTHS for criterion in CRITERIA]
        for axis, (depth, criterion) in zip(row, places, strict=True):
            for sensitivity in Sensitivity:
                *line, plain = shown[f"{table} {depth} {criterion} {sensitivity}"]
                axis.semilogx(EPSILONS, line, marker=".", label=str(sensitivity))
            axis.axhline(plain, color="grey", linestyle=":", label="plain ID3")
            axis.set_title(f"{table}, depth {depth}, {criterion}", fontsize=8)
            axis.set_xlabel("ε")
            axis.set_ylabel("accuracy in %")
    axes[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)
    print(f"wrote {path}")


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=TABLES)
    parser.add_argument("--runs", type=int, default=10, help="runs of 10-fold cross-validation")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one run, nltcs and acs")
    options = parser.parse_args()
    tables = [t for t in options.tables if t != "adult"] if options.quick else options.tables
    runs = 1 if options.quick else options.runs
    found = measured(options.data, cells(tables), runs, options.workers)
    shown = table_of(found, tables)
    ok = True
    print()
    for expected in dict.fromkeys(expectations(tables)):
        if {expected.better, expected.worse} <= found.keys():
            good, text = verdict(expected, found)
            ok &= good
            print(text)
    RESULTS.mkdir(exist_ok=True)
    if not options.quick:
        (RESULTS / "trees.json").write_text(json.dumps({"epsilons": EPSILONS, "accuracy": shown}))
        plot(shown, tables, RESULTS / "trees.png")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
