"""Accuracy of private ID3 on held-out rows against ε: what each sensitivity and criterion buys.

Runs of 10-fold cross-validation, for depth 2 and 5, on adult, nltcs and acs; the baseline is the
same tree at ε = 10⁶, which is plain ID3. What is expected is held against 99 % intervals of paired
differences of folds: an expectation fails when its sign flips beyond the interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting, rows_of
from benchmarks.result import Estimate, Result, mean
from benchmarks.simulation import randomness
from benchmarks.trees.tables import TreeTable, accuracy, tree_table
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection import SELECTORS
from mechanisms.trees.id3 import Id3, grow

TABLES = ("adult", "nltcs", "acs")
DEPTHS = (2, 5)
EPSILONS = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0)
CRITERIA = ("information_gain", "gini")
NO_NOISE = 1e6
FOLDS, RUNS = 10, 10

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


def expectations(table: str) -> list[Expected]:
    """What the mathematics and the papers lead one to expect, as pairs of cells of a table."""
    found: list[Expected] = []

    def add(depth: int, epsilon: float, one: str, other: str, gap: float = 0) -> None:
        make = partial(Cell, table, depth, GAIN)
        found.append(Expected(make(one, epsilon), make(other, epsilon), gap))

    for depth in DEPTHS:
        if table == "acs":
            for epsilon in (e for e in EPSILONS if e <= (0.1 if depth == 5 else 0.05)):
                add(depth, epsilon, SHIFTED, GLOBAL)
            add(depth, 0.01, SHIFTED, GLOBAL, 10)
            for epsilon in (0.5, 1.0, 2.0):
                # Local dampening inverts the order of attributes where its utilities are large.
                add(depth, epsilon, GLOBAL, LOCAL)
                add(depth, epsilon, GLOBAL, LOCAL, 3)
                add(depth, epsilon, LOCAL, GLOBAL, -4)
        if table == "nltcs":
            for epsilon in (0.05, 0.1):
                add(depth, epsilon, SHIFTED, GLOBAL)
                add(depth, epsilon, LOCAL, GLOBAL)
        for epsilon in EPSILONS:
            add(depth, epsilon, SHIFTED, LOCAL)
            add(depth, epsilon, FLATTENED, GLOBAL, -1)
            add(depth, epsilon, GLOBAL, FLATTENED, -1)
            gini = partial(Cell, table, depth, GINI, epsilon=epsilon)
            gain = Cell(table, depth, GAIN, LOCAL, epsilon)
            found.append(Expected(gini(sensitivity=GLOBAL), gain))
            found.append(Expected(gini(sensitivity=GLOBAL), gini(sensitivity=SHIFTED), -1))
            found.append(Expected(gini(sensitivity=GLOBAL), gini(sensitivity=LOCAL), -1))
    if table == "acs":
        for epsilon in (0.01, 0.05):
            add(5, epsilon, LOCAL, GLOBAL)
        for epsilon in (0.5, 1.0, 2.0):
            # More depth mends the inversion for shifted, and for shifted only.
            add(2, epsilon, GLOBAL, SHIFTED)
            add(5, epsilon, SHIFTED, LOCAL)
            add(5, epsilon, SHIFTED, GLOBAL, -1)
    return list(dict.fromkeys(found))


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


def gain(
    expected: Expected, found: dict[Cell, NDArray[np.float64]], confidence: float = 0.99
) -> Estimate:
    """How much better, in points: the mean of paired differences of folds with its interval."""
    return mean(found[expected.better] - found[expected.worse], confidence)


def measured(setting: Setting, table: str) -> Result:
    """With ``--quick`` a single run of ten folds."""
    result = Result()
    found: dict[Cell, NDArray[np.float64]] = {}
    runs = range(1 if setting.quick else RUNS)
    for cell in cells([table]):
        found[cell] = 100 * np.array([run(setting.data, cell, number) for number in runs])
    for depth in DEPTHS:
        lines = {}
        for criterion in CRITERIA:
            make = partial(Cell, table, depth, criterion)
            for s in map(str, Sensitivity):
                lines[f"{criterion} {s}"] = [mean(found[make(s, e)]) for e in EPSILONS]
            plain = mean(found[make(GLOBAL, NO_NOISE)])
            lines[f"{criterion}, plain"] = [plain] * len(EPSILONS)
        result.plot(f"{table}, depth {depth}", "accuracy in %", EPSILONS, lines)
    for expected in expectations(table):
        value, half = gain(expected, found)
        result.measure(str(expected), value, "points", half)
    return result


BENCHES = tuple(
    Bench(
        f"trees.{table}",
        f"How accurate are private ID3 trees of {table}, by sensitivity and criterion?",
        partial(measured, table=table),
        100.0,
        ("plain ID3", "sensitivity global"),
        tuple(Bar(str(e), least=e.gap) for e in expectations(table)),
        rows_of(table),
    )
    for table in TABLES
)
