"""Speed of distances, beside plain ways to count in the same rounds.

* ``max_dependency`` scores for every target of soybean and dermatology, k = 3, with either
  sensitivity, against a NumPy version that takes each target by itself with one bincount a subset;
* all pairs of 16 binary columns of 10⁷ rows, packing included, against a compiled kernel that
  increments one 2 × 2 table a row, on the same threads.

Times of whole metrics are an experiment of the papers, ``learning_times``.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.execution import ThreadExecutor
from app.service.warm import warm
from benchmarks.bench import Bar, Bench, Setting, rows_of
from benchmarks.data.tables import Table, read_table
from benchmarks.distances.metric_evaluation import SIZE, drawing
from benchmarks.result import Result
from benchmarks.rounds import Rounds, wall
from mechanisms.distances.options import Context, Options
from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.pairs import pair_tables
from mechanisms.model.executor import Executor
from mechanisms.model.sensitivity import Integers, Sensitivity

Floats = NDArray[np.float64]

DEPENDENT = ("soybean", "dermatology")
MODES = (Sensitivity.GLOBAL, Sensitivity.LOCAL)


def run(result: Result, setting: Setting) -> None:
    warm()
    executor = ThreadExecutor(2)
    for name in ("soybean",) if setting.quick else DEPENDENT:
        for mode in MODES[: setting.size(2, 1)]:
            dependency(result, read_table(setting.data, name), mode, executor)
    binary_pairs(result, setting, executor)
    executor.close()


def dependency(result: Result, table: Table, mode: Sensitivity, executor: Executor) -> None:
    """Scores of all 3-subsets for every target, by shared subsets and by NumPy."""
    options = Options(Context.MAX_DEPENDENCY, context_size=SIZE, sensitivity=mode)

    def ours() -> None:
        sampler = drawing(table, options, executor)
        for target in range(len(table.attributes)):
            sampler.scores(target, 20)

    if not agreeing(table, options):
        raise AssertionError(f"{table.name}: NumPy finds other scores")
    ours()
    ways = {"ours": wall(ours), "NumPy": wall(lambda: list(by_numpy(table, mode)))}
    rounds = Rounds.of("seconds", ways, 2, warm=0)
    rounds.report(result, f"{table.name}, max_dependency, {mode}")
    result.measure(f"{table.name}, {mode}: NumPy / ours", rounds.ratio("NumPy", "ours"), "×")
    result.measure(f"{table.name}, {mode}: scores of all targets", rounds.median("ours"), "s")


def agreeing(table: Table, options: Options) -> bool:
    """Both ways find the same q, and the same m of every β, for the first target."""
    sampler = drawing(table, options)
    exact, largest = next(by_numpy(table, Sensitivity.LOCAL))
    q = sampler.candidates(0)[1] / 2.0**sampler.grid.bits
    pairs = sampler.measured(0)[1].levels
    return np.allclose(q, exact, atol=1e-3) and bool((largest[pairs.rarest] == pairs.others).all())


def by_numpy(table: Table, mode: Sensitivity) -> Iterator[tuple[Floats, Integers]]:
    """−N·H(Y | S) of every subset for one target after another, by one bincount of S and Y a
    subset; with ``local`` also the largest m of every β of any level, else nothing."""
    columns = [table.records.codes[a.name].astype(np.int64) for a in table.attributes]
    levels = [len(a.levels) for a in table.attributes]
    numbers = np.arange(table.rows + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        g = np.where(numbers > 0, numbers * np.log2(numbers), 0.0)
    for target in range(len(columns)):
        others = [x for x in range(len(columns)) if x != target]
        scores, largest = [], np.zeros(table.rows + 1, np.int64)
        for a, b, c in combinations(others, SIZE):
            code = (columns[a] * levels[b] + columns[b]) * levels[c] + columns[c]
            cells = levels[a] * levels[b] * levels[c]
            counts = np.bincount(code * levels[target] + columns[target],
                                 minlength=cells * levels[target])  # fmt: skip
            joint = counts.reshape(cells, levels[target])
            together = joint.sum(axis=1)
            scores.append(g[joint].sum() - g[together].sum())
            if mode is Sensitivity.LOCAL:
                fewest = joint.min(axis=1)
                np.maximum.at(largest, np.maximum(fewest, 1) - 1, together - fewest)
        yield np.array(scores), largest


@compiled
def byte_table(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.int64]:
    counts = np.zeros((2, 2), np.int64)
    for row in range(len(first)):
        counts[first[row], second[row]] += 1
    return counts


def binary_pairs(result: Result, setting: Setting, executor: Executor) -> None:
    rows = setting.size(10_000_000, 1_000_000)
    rng = np.random.default_rng(1)
    columns = [(rng.integers(0, 2, rows, dtype=np.uint8), 2) for _ in range(16)]
    pairs = list(combinations(range(16), 2))

    def slowly() -> list[Any]:
        return executor.map(lambda p: byte_table(columns[p[0]][0], columns[p[1]][0]), pairs)

    counted = pair_tables(columns, pairs, executor)
    if not all((a == b).all() for a, b in zip(counted, slowly(), strict=True)):
        raise AssertionError("the two kernels count differently")
    ways = {"ours": wall(lambda: pair_tables(columns, pairs, executor)), "bytes": wall(slowly)}
    rounds = Rounds.of("seconds", ways, setting.times(3))
    rounds.report(result, f"all pairs of 16 binary columns of {rows:,} rows")
    result.measure("binary pairs: a table of bytes / ours", rounds.ratio("bytes", "ours"), "×")


BENCHES = (
    Bench(
        "distance_speed", "How fast are contexts scored and pairs of columns counted?", run, 90.0,
        ("NumPy, one bincount a subset", "a compiled kernel over bytes"),
        (
            Bar("*: NumPy / ours", least=5),
            Bar("*: scores of all targets", most=3),
            Bar("binary pairs: a table of bytes / ours", least=20),
        ),
        rows_of(*DEPENDENT),
    ),
)  # fmt: skip
