"""Accuracy of private ID3 on held-out rows against ε: what each sensitivity and criterion buys.

Runs of 10-fold cross-validation, for depth 2 and 5, on adult, nltcs and acs; the baseline is the
same tree at ε = 10⁶, which is plain ID3. Prints and plots mean accuracies, then holds what is
expected against 99 % intervals of paired differences: an expectation fails when its sign flips
beyond the interval, and the status is 1. Every accuracy goes to ``results/trees.csv`` as soon as
its run is done; ``--saved`` judges that file again.

    python -m benchmarks.trees --data DIR [--runs 10] [--workers 2] [--tables acs nltcs]
    python -m benchmarks.trees --data DIR --saved
"""

from __future__ import annotations

import csv
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.graphs import data_option
from benchmarks.simulation import randomness
from benchmarks.tree_data import TreeTable, accuracy, tree_table
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
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
        yield pair("acs", depth, 0.01, SHIFTED, GLOBAL, 10)
    for depth in DEPTHS:
        for epsilon in (0.05, 0.1):
            yield pair("nltcs", depth, epsilon, SHIFTED, GLOBAL)
            yield pair("nltcs", depth, epsilon, LOCAL, GLOBAL)
        for epsilon in (0.5, 1.0, 2.0):
            # Local dampening inverts the order of attributes where its utilities are large.
            yield pair("acs", depth, epsilon, GLOBAL, LOCAL)
            yield pair("acs", depth, epsilon, GLOBAL, LOCAL, 3)
            yield pair("acs", depth, epsilon, LOCAL, GLOBAL, -4)
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
        # More depth mends the inversion for shifted, and for shifted only.
        yield pair("acs", 2, epsilon, GLOBAL, SHIFTED)
        yield pair("acs", 5, epsilon, SHIFTED, LOCAL)
        yield pair("acs", 5, epsilon, SHIFTED, GLOBAL, -1)


@cache
def loaded(folder: Path, name: str) -> TreeTable:
    return tree_table(folder, name)


@lru_cache(maxsize=1)
def folds(folder: Path, name: str, number: int) -> list[tuple[TableRecords, TableRecords]]:
    """(to learn from, held out) of one run; they are those of every cell of the table."""
    table = loaded(folder, name)
    order = np.random.default_rng(number).permutation(table.rows)
    parts = np.array_split(order, FOLDS)
    return [
        (table.taken(np.concatenate(parts[:i] + parts[i + 1 :])), table.taken(part))
        for i, part in enumerate(parts)
    ]


def run(folder: Path, cell: Cell, number: int) -> list[float]:
    """Accuracies on the held-out folds of one run."""
    table = loaded(folder, cell.table)
    asked = Id3(
        table.task,
        cell.depth,
        cell.criterion,
        Sensitivity(cell.sensitivity),
        SELECTORS["permute_and_flip"],
        True,
    )
    loss = PrivacyLoss.parse(repr(cell.epsilon))
    found = []
    for rest, held_out in folds(folder, cell.table, number):
        tree = grow(rest, table.dataset, asked, loss, randomness(), Inline())
        found.append(accuracy(tree, held_out, table.task))
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
    folder: Path, wanted: list[Cell], runs: int, workers: int, path: Path
) -> dict[Cell, NDArray[np.float64]]:
    """Accuracies in percent, shape (runs, folds), of every cell; saved run by run."""
    tables = list(dict.fromkeys(cell.table for cell in wanted))
    jobs = [
        (number, [cell for cell in wanted if cell.table == table])
        for number in range(runs)
        for table in tables
    ]
    with ProcessPoolExecutor(workers) as pool, path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*Cell.__dataclass_fields__, "run", "fold", "accuracy"])
        for (number, of_table), job in zip(
            jobs, pool.map(partial(_job, folder), jobs), strict=True
        ):
            for cell, values in zip(of_table, job, strict=True):
                for fold, value in enumerate(values):
                    writer.writerow([*astuple(cell), number, fold, f"{100 * value:.4f}"])
            file.flush()
            print(f"run {number} of {of_table[0].table} is done", file=sys.stderr, flush=True)
    return saved(path)


def _job(folder: Path, job: tuple[int, list[Cell]]) -> list[list[float]]:
    number, wanted = job
    return [run(folder, cell, number) for cell in wanted]


def saved(path: Path) -> dict[Cell, NDArray[np.float64]]:
    """Accuracies in percent, shape (runs, folds), of every cell of a file."""
    found: dict[Cell, list[float]] = {}
    with path.open(newline="") as file:
        for line in csv.DictReader(file):
            where = line["table"], int(line["depth"]), line["criterion"], line["sensitivity"]
            cell = Cell(*where, float(line["epsilon"]))
            found.setdefault(cell, []).append(float(line["accuracy"]))
    return {cell: np.array(values).reshape(-1, FOLDS) for cell, values in found.items()}


def verdict(
    expected: Expected, found: dict[Cell, NDArray[np.float64]], deviations: float = 2.58
) -> tuple[bool, str]:
    """Whether the paired difference is not below the gap beyond an interval of the folds, 99 %
    unless more ``deviations`` are asked for."""
    gained = (found[expected.better] - found[expected.worse]).ravel()
    margin = deviations * float(gained.std(ddof=1)) / gained.size**0.5
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
    parser.add_argument("--saved", action="store_true", help="judge the last run again")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "trees.csv"
    if options.saved:
        found = saved(path)
    else:
        found = measured(options.data, cells(options.tables), options.runs, options.workers, path)
    tables = [table for table in TABLES if any(cell.table == table for cell in found)]
    shown = table_of(found, tables)
    ok = True
    print()
    for expected in dict.fromkeys(expectations(tables)):
        if {expected.better, expected.worse} <= found.keys():
            good, text = verdict(expected, found)
            ok &= good
            print(text)
    plot(shown, tables, RESULTS / "trees.png")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
