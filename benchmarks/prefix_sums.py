"""The noise of prefix sums of 148,654 salaries: smooth sensitivity against corrected levels.

    python -m benchmarks.prefix_sums --data DIR [--plots FOLDER]

Amplitude 2S/ε against the cut-off k for the sum of the k smallest salaries (negative pay as 0), in
cents, δ = ε/2n, at every k at once by one pass from the largest down. Tied salaries are one level
of largest local sensitivities, so distances vanish there: that is the only difference, as the
passes over the salaries without ties show. Verdicts last.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from math import exp
from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from benchmarks.graphs import data_option
from mechanisms.noise.addition import Integers
from mechanisms.statistics.prefix_sum import CutOffBound, CutOffLevels, local_changes
from mechanisms.statistics.smoothness import smooth_beta

Amplitudes = NDArray[np.float64]
SHOWN = (1, 100, 360, 369, 500, 1000, 10_000, 50_000, 100_000, 148_000)
SAMPLED = (0, 1, 368, 20_000, 148_653)


def main() -> None:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    data_option(parser)
    parser.add_argument("--plots", type=Path, help="folder for the plot (needs matplotlib)")
    options = parser.parse_args()
    cents = np.rint(100 * np.maximum(read_salaries(options.data), 0)).astype(np.int64)
    changes = local_changes(np.sort(cents))
    count = len(cents)
    loss = PrivacyLoss(NANO, ATTO // (2 * count))
    beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
    assert beta is not None
    smooth, levels = (2e-2 * bound(changes, beta) for bound in (smooth_bounds, level_bounds))

    print(f"prefix sum of {count} salaries, ε = 1, δ = ε/2n, β = {beta:.5f}: 2S/ε in dollars")
    print(f"{'k':>9}{'smooth':>16}{'levels':>16}{'ratio':>12}")
    for k in (*SHOWN, count):
        print(f"{k:9}{smooth[k]:16.2f}{levels[k]:16.2f}{levels[k] / smooth[k]:12.4g}")
    same = np.isclose(smooth, levels, rtol=1e-9)
    ratio = levels / np.maximum(smooth, 1e-12)
    print(f"equal at {same.mean():.2%} of the cut-offs, within 1 % at {(ratio < 1.01).mean():.2%};")
    print(
        f"largest ratio {ratio.max():.4g}, at k = {ratio.argmax()}, {zeros(cents)} salaries are 0"
    )
    print(f"\n{'cut-offs':>9}{'smooth s':>12}{'levels s':>12}{'n² maximum s':>15}")
    seconds = [timed(changes[:size], beta) for size in (count // 4, count // 2, count + 1)]

    apart = np.unique(changes)
    verdicts = {
        "levels are never less noisy": bool((levels >= smooth * (1 - 1e-12)).all()),
        "without ties both are the same": np.allclose(
            smooth_bounds(apart, beta), level_bounds(apart, beta), rtol=1e-12
        ),
        "tied salaries: levels are over 1000 times as noisy somewhere": bool(ratio.max() > 1000),
        "the service finds the same at the cut-offs sampled": all(
            np.isclose(2e-2 * found, wanted[k], rtol=1e-9)
            for k in SAMPLED
            for found, wanted in (
                (CutOffBound(changes, k).smooth(beta), smooth),
                (CutOffLevels(changes, k).smooth(beta), levels),
            )
        ),
        # Four times the cut-offs in a quadratic pass would be sixteen times the time.
        "both take linear time": all(seconds[2][i] <= 8 * seconds[0][i] for i in (0, 1)),
    }
    if options.plots is not None:
        plot(options.plots, smooth, levels)
    print()
    for what, held in verdicts.items():
        print(f"{'holds' if held else 'FAILS':6} {what}")
    if not all(verdicts.values()):
        sys.exit(1)


def read_salaries(folder: Path) -> NDArray[np.float64]:
    column = pyarrow.csv.read_csv(folder / "sf_salaries.csv.gz")["TotalPay"]
    return np.asarray(column.to_numpy(), np.float64)


def smooth_bounds(changes: Integers, beta: float) -> Amplitudes:
    """max over j of LS_j·e^{−β|j − k|} at every k, for LS that never falls: one pass down."""
    growth, bounds = exp(beta), changes.astype(float).tolist()
    for k in range(len(bounds) - 2, -1, -1):
        bounds[k] = max(bounds[k], bounds[k + 1] / growth)
    return np.array(bounds)


def level_bounds(changes: Integers, beta: float) -> Amplitudes:
    """The same over levels: runs of equal LS."""
    starts = np.flatnonzero(np.diff(changes, prepend=-1))
    level = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(changes)))
    bounds: Amplitudes = smooth_bounds(changes[starts], beta)[level]
    return bounds


def quadratic(changes: Integers, beta: float, share: int) -> None:
    """Every ``share``-th of the maxima by the definition, over all cut-offs."""
    places = np.arange(len(changes))
    for k in range(0, len(changes), share):
        (np.exp(-beta * np.abs(places - k)) * changes).max()


def timed(changes: Integers, beta: float) -> list[float]:
    """Seconds of a core for all cut-offs by both passes; printed, with those of the definition."""
    seconds = []
    for bound in (smooth_bounds, level_bounds):
        runs = []
        for _ in range(5):
            start = time.process_time()
            bound(changes, beta)
            runs.append(time.process_time() - start)
        seconds.append(min(runs))
    share = 1000
    start = time.process_time()
    quadratic(changes, beta, share)
    whole = share * (time.process_time() - start)
    print(f"{len(changes):9}{seconds[0]:12.4f}{seconds[1]:12.4f}{whole:15.0f}", flush=True)
    return seconds


def zeros(cents: Integers) -> int:
    return int((cents == 0).sum())


def plot(folder: Path, smooth: Amplitudes, levels: Amplitudes) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    figure, panels = pyplot.subplots(1, 2, figsize=(12, 4))
    for axes, last in zip(panels, (len(smooth), 1000), strict=True):
        step = max(last // 3000, 1)
        for name, values in (("smooth", smooth), ("largest local sensitivities", levels)):
            axes.plot(np.arange(last)[::step], values[:last:step], label=name)
        axes.set(xlabel="cut-off k", ylabel="noise amplitude 2S/ε, dollars", yscale="log")
    panels[0].legend()
    panels[1].set_title("the tied salaries of 0, and what follows")
    figure.tight_layout()
    figure.savefig(folder / "prefix_sums.svg")
    pyplot.close(figure)


if __name__ == "__main__":
    main()
