"""What the size k of contexts and their share h of ε do to distance matrices and their cells.

L1 per cell is the mean distance between a noisy contingency table and the true one, exact where
nothing is clamped, and that between private and true distance matrices, sampled.
"""

from fractions import Fraction
from math import exp

import numpy as np

from benchmarks.bench import Setting, for_each, rows_of
from benchmarks.data.tables import read_table
from benchmarks.distances.metric_evaluation import Truth, correlation
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import HOLDS, OTHERWISE, Estimate, Result, exact, mean
from mechanisms.distances.options import Context, Options
from mechanisms.model.sensitivity import Sensitivity

TABLES = {"cmc": 2.0, "mushroom": 4.0, "soybean": 8.0}
SIZES = [1, 2, 3, 4, 5, 6]
SHARES = ["0.1", "0.3", "0.5", "0.7", "0.9"]
EPSILONS = (0.25, 1.0)
TIMES = 20

Line = dict[str, list[Estimate]]


def run(result: Result, setting: Setting, name: str) -> None:
    truth = Truth(read_table(setting.data, name))
    sizes, shares = setting.fewer(SIZES), setting.fewer(SHARES)
    times = setting.times(TIMES)

    def along(options: list[Options]) -> tuple[Line, ...]:
        pairs = {e: [matrices(truth, one, e, times) for one in options] for e in EPSILONS}
        return tuple({f"ε = {e:g}": [p[i] for p in line] for e, line in pairs.items()}
                     for i in (0, 1))  # fmt: skip

    by_size, cells = along([options(k, "0.3") for k in sizes])
    title = f"{name}, max_relevance"
    result.plot(f"{title}, h = 0.3", "correlation of distance matrices", sizes, by_size,
                "size k of contexts", logarithmic=False)  # fmt: skip
    result.plot(f"{title}, h = 0.3", "L1 per cell of distance matrices", sizes, cells,
                "size k of contexts", logarithmic=False)  # fmt: skip
    by_share, _ = along([options(3, h) for h in shares])
    result.plot(f"{title}, k = 3", "correlation of distance matrices", [float(h) for h in shares],
                by_share, "share h of ε for contexts", logarithmic=False)  # fmt: skip
    result.plot(
        f"{name}, one target, h = 0.3", "expected L1 per cell of noisy tables", sizes,
        {f"ε = {e:g}": exact([expected_noise(e * 0.7, k) for k in sizes]) for e in EPSILONS},
        "size k of contexts", logarithmic=False,
    )  # fmt: skip
    low = [v for v, _ in by_size[f"ε = {EPSILONS[0]:g}"]]
    middle = low[len(low) // 2]
    result.claim(
        f"{name}: the size of contexts matters little, and few attributes suffice",
        f"correlation between {min(low):.3f} and {max(low):.3f} for k from {sizes[0]} to "
        f"{sizes[-1]}, {middle:.3f} in the middle, at ε = {EPSILONS[0]:g}",
        HOLDS if max(low) - min(low) <= 0.1 else OTHERWISE,
        "noise grows with k: each table gets ε/k",
    )


def options(size: int, share: str) -> Options:
    return Options(
        Context.MAX_RELEVANCE,
        context_size=size,
        context_share=Fraction(share),
        sensitivity=Sensitivity.GLOBAL,
    )


def matrices(
    truth: Truth, choice: Options, epsilon: float, times: int
) -> tuple[Estimate, Estimate]:
    """Correlation (targets of three values or more), and L1 per cell, against the same without
    noise; ε a target."""
    best = {one.attribute.name: one.matrix for one in truth.metric(truth.contexts(choice))}
    learners = [truth.learner(choice, a.name) for a in truth.public.attributes]
    likeness, apart = [], []
    for metrics in zip(*(learner.answers(epsilon, times) for learner in learners), strict=True):
        ours, errors = [], []
        for (one,) in metrics:
            true = best[one.attribute.name]
            errors.append(float(np.abs(one.matrix - true).mean()))
            if len(true) > 2:
                ours.append(correlation(one.matrix, true))
        likeness.append(float(np.mean(ours)))
        apart.append(float(np.mean(errors)))
    return mean(likeness), mean(apart)


def expected_noise(epsilon: float, tables: int) -> float:
    """E|discrete Laplace| a cell when ``tables`` tables share ε, under replace."""
    p = exp(-epsilon / (2 * tables))
    return 2 * p / (1 - p * p)


BENCHES = for_each("context_effects", "Effects of k and h on {}", run, DISTANCES, TABLES, rows_of)
