"""Speed of distances, in ratios of one run.

    python -m benchmarks.distance_speed --data DIR

* ``max_dependency`` scores for every target of soybean and dermatology, k = 3, with either
  sensitivity: at least 5 times a NumPy version that takes each target by itself with one bincount a
  subset, and within 3 s;
* all pairs of 16 binary columns of 10⁷ rows, packing included: at least 20 times a compiled kernel
  that increments one 2 × 2 table a row;
* the whole metric of adult_full within 2 s.
Status 1 when one is missed.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from app.service.warm import warm
from benchmarks.graphs import data_option
from benchmarks.tables import Table, read_table
from mechanisms.distances.contexts import Drawing
from mechanisms.distances.learning import learn
from mechanisms.distances.options import Context, Options
from mechanisms.distances.plan import Plan, plan
from mechanisms.kernels.compiled import compiled
from mechanisms.kernels.pairs import pair_tables
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.keystream import SystemRandomness

Floats = NDArray[np.float64]

SIZE = 3


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--rows", type=int, default=10**7, help="rows of the binary columns")
    options = parser.parse_args()
    warm()
    executor = ThreadExecutor(2)
    found = [
        *(
            dependency(table, mode, executor)
            for table in (read_table(options.data, name) for name in ("soybean", "dermatology"))
            for mode in (Sensitivity.GLOBAL, Sensitivity.LOCAL)
        ),
        binary_pairs(options.rows, executor),
        whole_metric(options.data, executor),
    ]
    executor.close()
    return 0 if all(found) else 1


def best_of(times: int, work: Callable[[], Any]) -> float:
    """The shortest of some runs, in seconds."""
    taken = []
    for _ in range(times):
        start = perf_counter()
        work()
        taken.append(perf_counter() - start)
    return min(taken)


def dependency(table: Table, mode: Sensitivity, executor: Executor) -> bool:
    """Scores of all 3-subsets for every target, by shared subsets and by NumPy."""
    # A public plan of contexts for all targets: as if the baseline were not less noisy.
    options = Options(Context.MAX_DEPENDENCY, context_size=SIZE, sensitivity=mode)
    plans = plan(table.dataset, options, None)
    public = Plan(plans.dataset, options, plans.attributes, plans.targets, SIZE, 0, None)

    def ours() -> None:
        drawing = Drawing(table.records, public, executor)
        for target in public.targets:
            drawing.scores(target, 20)

    same = agreeing(table, public)
    ours()
    fast, slow = best_of(5, ours), best_of(1, lambda: list(by_numpy(table, mode)))
    good = same and slow >= 5 * fast and fast <= 3
    print(
        f"{table.name}, max_dependency, {mode}, for {len(public.targets)} targets, k = {SIZE}: "
        f"{fast:.2f} s, NumPy {slow:.2f} s, ratio {slow / fast:.1f} (≥ 5, ≤ 3 s)  {verdict(good)}",
        flush=True,
    )
    return good


def agreeing(table: Table, public: Plan) -> bool:
    """Both ways find the same q, and the same m of every β, for the first target."""
    drawing = Drawing(table.records, public, Inline())
    exact, largest = next(by_numpy(table, Sensitivity.LOCAL))
    q = drawing.candidates(0)[1] / 2.0**drawing.grid.bits
    pairs = drawing.measured(0)[1].levels
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


def binary_pairs(rows: int, executor: Executor) -> bool:
    rng = np.random.default_rng(1)
    columns = [(rng.integers(0, 2, rows, dtype=np.uint8), 2) for _ in range(16)]
    pairs = list(combinations(range(16), 2))
    byte_table(columns[0][0][:9], columns[1][0][:9])

    def slowly() -> list[Any]:
        return executor.map(lambda p: byte_table(columns[p[0]][0], columns[p[1]][0]), pairs)

    counted = pair_tables(columns, pairs, executor)
    same = all((a == b).all() for a, b in zip(counted, slowly(), strict=True))
    fast = best_of(5, lambda: pair_tables(columns, pairs, executor))
    slow = best_of(2, slowly)
    good = same and slow >= 20 * fast
    print(
        f"16 binary columns × {rows:,} rows, all pairs: {fast * 1e3:.0f} ms, a byte table a row "
        f"{slow * 1e3:.0f} ms on the same threads, ratio {slow / fast:.1f} (≥ 20)  {verdict(good)}",
        flush=True,
    )
    return good


def whole_metric(folder: Path, executor: Executor) -> bool:
    table = read_table(folder, "adult_full")
    ok = True
    ways = [
        *(Options(context) for context in Context),
        *(
            Options(context, sensitivity=Sensitivity.GLOBAL)
            for context in (Context.MAX_RELEVANCE, Context.MAX_DEPENDENCY)
        ),
    ]
    for way in ways:
        public = plan(table.dataset, way, None)

        def work(public: Plan = public) -> None:
            learn(table.records, public, PrivacyLoss(10**9), SystemRandomness(), executor)

        work()
        taken = best_of(3, work)
        ok &= taken <= 2
        print(
            f"adult_full, whole metric, {way.context}, {way.sensitivity}: {taken:.2f} s (≤ 2 s)  "
            f"{verdict(taken <= 2)}",
            flush=True,
        )
    return ok


def verdict(good: bool) -> str:
    return "holds" if good else "FAILS"


if __name__ == "__main__":
    sys.exit(main())
