"""The printed algorithm against ours, at the same ε on the same data, in one call.

    python -m benchmarks.distance_comparison --data DIR [--quick]

For every target: contexts of k = 3 by ``max_relevance`` (share h = 0.3), then distances. *printed*:
the exponential mechanism with twice the loose sensitivity, 2(1/N)(1/ln 2 + log₂N), and ε/m a
target for the whole metric. *exact* and *dampened*: the service, with either sensitivity, pairs
shared between targets. Quality is the share of the true context found; correlation is Pearson's,
of the matrices of targets with three values or more. Tables: mean gains with 99 % intervals.

Expected: exact above printed at ε ≥ 0.5 a target on nltcs, acs and mushroom; dampened not below
exact, and above it on nltcs at 0.05 ≤ ε ≤ 0.5; correlation of exact not below printed. Status 1
when a sign flips beyond a 99 % interval. Contexts are drawn ten times as often as matrices.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from math import log, log2
from pathlib import Path

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.graphs import data_option
from benchmarks.metric_evaluation import (
    SIZE,
    Truth,
    correlation,
    drawing,
    interval,
    share_found,
)
from benchmarks.tables import read_table
from mechanisms.distances.metric import distance_matrix, embedding
from mechanisms.distances.options import Context
from mechanisms.kernels.executor import Inline
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate, score_bits
from mechanisms.selectors import SELECTORS
from mechanisms.sensitivity import Integers, Sensitivity

RESULTS = Path(__file__).parent / "results"
NAMES = ("dermatology", "soybean", "cmc", "mushroom", "nltcs", "acs", "adult_full")
QUICK = ("cmc", "mushroom", "nltcs")
EPSILONS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
SHARE = 0.3
ARMS = ("printed", "exact", "dampened")
#: Contexts are cheap to draw and their differences small.
DRAWS = 10


class Comparison:
    """One table: all scores once, draws and noise again and again. ε is that of one target."""

    def __init__(self, folder: Path, name: str) -> None:
        self.truth = Truth(read_table(folder, name))
        self.targets = self.truth.public.targets
        self.true = self.truth.drawn(Context.MAX_RELEVANCE)
        self.bits = score_bits(SIZE)
        table = self.truth.table
        sources = {
            arm: drawing(table, Context.MAX_RELEVANCE, SIZE, mode)
            for arm, mode in (("exact", Sensitivity.GLOBAL), ("dampened", Sensitivity.LOCAL))
        }
        self.scores = {
            arm: {t: source.scores(t, self.bits) for t in self.targets}
            for arm, source in sources.items()
        }
        exact = sources["exact"]
        rows = table.rows
        printed = 2 * (1 / log(2) + log2(rows))
        # q is N·I', in steps of 2^−g; the printed sensitivity times N is that of N·I'.
        grid = exact.grid.bits
        self.scores["printed"] = {
            t: np.floor(exact.candidates(t)[1] / 2.0**grid / printed * 2**self.bits).astype(
                np.int64
            )
            for t in self.targets
        }

    def contexts(self, arm: str, epsilon: float) -> dict[int, tuple[int, ...]]:
        """One context of every target, each at ε·h."""
        loss = PrivacyLoss(round(epsilon * SHARE * 1e9))
        selector = SELECTORS["exponential" if arm == "printed" else "permute_and_flip"]
        found = {}
        for target in self.targets:
            others = self.truth.public.others(target)
            drawn = selector.top(self.scores[arm][target], self.bits, loss, SIZE, "one_shot",
                                 SystemRandomness(), Inline())  # fmt: skip
            found[target] = tuple(others[i] for i in drawn)
        return found

    def quality(self, contexts: dict[int, tuple[int, ...]]) -> float:
        return float(np.mean([share_found(contexts[t], self.true[t]) for t in self.targets]))

    def correlation(self, arm: str, contexts: dict[int, tuple[int, ...]], epsilon: float) -> float:
        """Of the whole metric at ε a target, m·ε in all: the printed algorithm releases k tables
        a target, ours every pair once."""
        pairs = {(min(x, y), max(x, y)) for y, context in contexts.items() for x in context}
        nano = round(epsilon * (1 - SHARE) * 1e9)
        if arm == "printed":
            rate = Rate.of_counts(nano, 2 * SIZE)
        else:
            rate = Rate.of_counts(nano * len(self.targets), 2 * len(pairs))
        noisy: dict[tuple[int, int], Integers] = {}
        found = []
        for y in self.targets:
            if self.truth.public.levels[y] < 3:
                continue
            tables = []
            for x in contexts[y]:
                key = (x, y) if arm == "printed" else (min(x, y), max(x, y))
                if key not in noisy:
                    exact = self.truth.tables.of(*key)
                    flat = np.ascontiguousarray(exact).ravel()
                    noise = discrete_laplace(flat, rate, SystemRandomness(), Inline())
                    noisy[key] = noise.reshape(exact.shape)
                tables.append(noisy[key] if key == (x, y) else noisy[key].T)
            best = embedding([self.truth.tables.of(x, y) for x in self.true[y]])
            found.append(correlation(distance_matrix(embedding(tables)), distance_matrix(best)))
        return float(np.mean(found)) if found else float("nan")


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="three tables")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    ok, results = True, {}
    for name in QUICK if options.quick else NAMES:
        good, results[name] = compare(Comparison(options.data, name), name, options.times)
        ok &= good
    (RESULTS / "distance_comparison.json").write_text(json.dumps(results))
    return 0 if ok else 1


def compare(one: Comparison, name: str, times: int) -> tuple[bool, dict[str, object]]:
    ok, rows = True, {}
    print(f"\n{name}: quality of contexts and correlation, {times} repetitions; ± is 99 %")
    for epsilon in EPSILONS:
        quality: dict[str, list[float]] = {arm: [] for arm in ARMS}
        likeness: dict[str, list[float]] = {arm: [] for arm in ARMS}
        for repetition in range(DRAWS * times):
            for arm in ARMS:
                contexts = one.contexts(arm, epsilon)
                quality[arm].append(one.quality(contexts))
                if repetition < times:
                    likeness[arm].append(one.correlation(arm, contexts, epsilon))
        gains = {
            "exact − printed": interval(np.subtract(quality["exact"], quality["printed"])),
            "dampened − exact": interval(np.subtract(quality["dampened"], quality["exact"])),
            "correlation, exact − printed": interval(
                np.subtract(likeness["exact"], likeness["printed"])
            ),
            "correlation, dampened − printed": interval(
                np.subtract(likeness["dampened"], likeness["printed"])
            ),
        }
        rows[str(epsilon)] = {
            "quality": {arm: float(np.mean(values)) for arm, values in quality.items()},
            "correlation": {arm: float(np.mean(values)) for arm, values in likeness.items()},
            "gains": gains,
        }
        means = " ".join(f"{arm} {np.mean(quality[arm]):.3f}" for arm in ARMS)
        print(f"ε {epsilon:g}: {means}; " + "; ".join(
            f"{what} {mean:+.3f} ± {half:.3f}" for what, (mean, half) in gains.items()
            if not np.isnan(mean)), flush=True)  # fmt: skip
        ok &= held(name, epsilon, gains)
    return ok, rows


def held(name: str, epsilon: float, gains: dict[str, tuple[float, float]]) -> bool:
    """Print what is expected here, and whether its sign is shown, open or flipped."""
    expected = [("correlation, exact − printed", False), ("dampened − exact", False)]
    if name in ("nltcs", "acs", "mushroom") and epsilon >= 0.5:
        expected.append(("exact − printed", True))
    if name == "nltcs" and 0.05 <= epsilon <= 0.5:
        expected[1] = ("dampened − exact", True)
    ok = True
    for what, above in expected:
        mean, half = gains[what]
        if np.isnan(mean):
            continue
        flipped = mean + half < 0
        ok &= not flipped
        shown = "holds" if not above or mean - half > 0 else "open: within the interval"
        print(f"  {what} {'> 0' if above else '≥ 0'}: {'FAILS' if flipped else shown}")
    return ok


if __name__ == "__main__":
    sys.exit(main())
