"""What the size k of contexts and their share h of ε do to distance matrices and their cells.

L1 per cell is the mean distance between a noisy contingency table and the true one, exact where
nothing is clamped, and that between private and true distance matrices, sampled.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Setting, for_each, rows_of
from benchmarks.data.tables import read_table
from benchmarks.distances.metric_evaluation import Floats, Truth, correlation
from benchmarks.reproduction.experiments.distances import OWN, OWN_OPTIONS
from benchmarks.reproduction.papers import DISTANCES
from benchmarks.result import Estimate, Result, exact, mean
from benchmarks.rho import rho_of
from mechanisms.distances.options import Context, Options
from mechanisms.model.sensitivity import Sensitivity

TABLES = {"cmc": 3.0, "mushroom": 6.0, "soybean": 12.0}
SIZES = [1, 2, 3, 4, 5, 6]
SHARES = ["0.1", "0.3", "0.5", "0.7", "0.9"]
#: The share of ε that the paper spends on choosing contexts, the attributes that define distances.
TAKEN = "0.3"
EPSILONS = (0.25, 1.0)
TIMES = 20
#: A difference of correlations below ``EQUAL`` counts as none. So does a fall of an error by less
#: than the share ``FALL`` of its first value.
EQUAL, FALL = 0.05, 0.1

Line = dict[str, list[Estimate]]


def run(result: Result, setting: Setting, name: str) -> None:
    truth = Truth(read_table(setting.data, name))
    sizes, shares = setting.fewer(SIZES), setting.fewer(SHARES)
    times = setting.times(TIMES)

    def along(options: list[Options]) -> dict[float, list[Floats]]:
        return {e: [matrices(truth, one, e, times) for one in options] for e in EPSILONS}

    sized, shared = (
        along([options(k, TAKEN) for k in sizes]),
        along([options(3, h) for h in shares]),
    )
    (by_size, cells), (by_share, _) = map(estimates, (sized, shared))
    for e in EPSILONS:
        served = [matrices(truth, own_options(k), rho_of(e), times) for k in sizes]
        for number, lines in enumerate((by_size, cells)):
            lines[f"{OWN}, ε = {e:g}"] = [mean(one[number]) for one in served]
    title = f"{name}, max_relevance"
    result.plot(f"{title}, h = 0.3", "correlation of distance matrices", sizes, by_size,
                "size k of contexts", logarithmic=False)  # fmt: skip
    result.plot(f"{title}, h = 0.3", "L1 per cell of distance matrices", sizes, cells,
                "size k of contexts", logarithmic=False)  # fmt: skip
    result.plot(f"{title}, k = 3", "correlation of distance matrices", [float(h) for h in shares],
                by_share, "share h of ε for contexts", logarithmic=False)  # fmt: skip
    result.plot(
        f"{name}, one target, h = 0.3", "expected L1 per cell of noisy tables", sizes,
        {f"ε = {e:g}": exact([expected_noise(e * 0.7, k) for k in sizes]) for e in EPSILONS},
        "size k of contexts", logarithmic=False,
    )  # fmt: skip
    of_sizes = dict(zip(sizes, (one[0] for one in sized[EPSILONS[0]]), strict=True))

    def of_size(size: int) -> float:
        return float(matrices(truth, options(size, TAKEN), EPSILONS[0], 1)[0, 0])

    judge_sizes(result, setting, name, of_sizes, of_size)
    first, last = (sized[e][-1][1] for e in EPSILONS)

    def draw() -> float:
        one, other = (matrices(truth, options(SIZES[-1], TAKEN), e, 1)[1, 0] for e in EPSILONS)
        return float(one - other)

    what = f"{name}, k = {SIZES[-1]}: the L1 per cell of distance matrices"
    judge_fall(result, setting, what, first, last, draw)
    runs = dict(zip(shares, (one[0] for one in shared[EPSILONS[0]]), strict=True))

    def correlated(share: str) -> float:
        return float(matrices(truth, options(3, share), EPSILONS[0], 1)[0, 0])

    if TAKEN in runs:
        judge_shares(result, setting, name, runs, correlated)


def judge_sizes(
    result: Result,
    setting: Setting,
    name: str,
    runs: Mapping[int, Floats],
    draw: Callable[[int], float],
) -> None:
    """Whether the size of contexts matters little, from correlations at the least ε.

    ``draw`` is one further correlation with a size.
    """
    worst, best = (of(runs, key=lambda size: float(runs[size].mean())) for of in (min, max))
    setting.compare(
        result,
        f"{name}: the size of contexts matters little, and few attributes suffice",
        lambda value, half: (
            f"correlation {-value:.3f} ± {half:.3f} higher with k = {best} than with k = {worst}, "
            f"at ε = {EPSILONS[0]:g}"
        ),
        (runs[worst] - runs[best]).tolist(),
        lambda: draw(worst) - draw(best),
        EQUAL,
        "noise grows with k, as each table gets ε/k, and one attribute says little",
        no_less=True,
    )


def judge_fall(
    result: Result,
    setting: Setting,
    what: str,
    first: Floats,
    last: Floats,
    draw: Callable[[], float],
) -> None:
    """Whether an error falls with ε, from its values at the least ε and at the largest one.

    ``draw`` is the difference of two further values.
    """
    setting.compare(
        result,
        f"{what} falls with ε",
        lambda value, half: f"by {value:.4f} ± {half:.4f} of {first.mean():.4f}",
        (first - last).tolist(),
        draw,
        FALL * float(first.mean()),
        "noise drowns the distances at every ε tried",
    )


def judge_shares(
    result: Result,
    setting: Setting,
    name: str,
    runs: Mapping[str, Floats],
    draw: Callable[[str], float],
) -> None:
    """Whether ``TAKEN`` is as good as the best share of ε, from correlations at the least ε.

    ``draw`` is one further correlation at a share.
    """
    best = max(runs, key=lambda share: float(runs[share].mean()))
    setting.compare(
        result,
        f"{name}: h = {TAKEN} is as good a share of ε for contexts as any",
        lambda gap, half: (
            f"the best of those tried is h = {best}, with a correlation that is higher by "
            f"{-gap:.3f} ± {half:.3f} at ε = {EPSILONS[0]:g}"
        ),
        (runs[TAKEN] - runs[best]).tolist(),
        lambda: draw(TAKEN) - draw(best),
        EQUAL,
        "another share leaves less noise where it decides",
        no_less=True,
    )


def estimates(runs: Mapping[float, list[Floats]]) -> tuple[Line, ...]:
    """Correlation, and L1 per cell, as lines by ε."""
    return tuple(
        {f"ε = {e:g}": [mean(one[number]) for one in line] for e, line in runs.items()}
        for number in (0, 1)
    )


def options(size: int, share: str) -> Options:
    return Options(
        Context.MAX_RELEVANCE,
        context_size=size,
        context_share=Fraction(share),
        sensitivity=Sensitivity.GLOBAL,
    )


def own_options(size: int) -> Options:
    """What the service takes where a query names the size of contexts alone."""
    return replace(OWN_OPTIONS, context_size=size)


def matrices(truth: Truth, choice: Options, loss: PrivacyLoss | float, times: int) -> Floats:
    """Correlation (targets of three values or more), and L1 per cell, against the same without
    noise, (2, times); for a loss, or at ε, of each target."""
    best = {one.attribute.name: one.matrix for one in truth.metric(truth.contexts(choice))}
    learners = [truth.learner(choice, a.name) for a in truth.public.attributes]
    likeness, apart = [], []
    for metrics in zip(*(learner.answers(loss, times) for learner in learners), strict=True):
        ours, errors = [], []
        for (one,) in metrics:
            true = best[one.attribute.name]
            errors.append(float(np.abs(one.matrix - true).mean()))
            if len(true) > 2:
                ours.append(correlation(one.matrix, true))
        likeness.append(float(np.mean(ours)))
        apart.append(float(np.mean(errors)))
    return np.array([likeness, apart])


def expected_noise(epsilon: float, tables: int) -> float:
    """E|discrete Laplace| a cell when ``tables`` tables share ε, under replace."""
    p = exp(-epsilon / (2 * tables))
    return 2 * p / (1 - p * p)


BENCHES = for_each("context_effects", "Effects of k and h on {}", run, DISTANCES, TABLES, rows_of)
