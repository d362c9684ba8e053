"""How long a draw takes, and that its time does not depend on the scores.

    python -m benchmarks.draws [--candidates N] [--repeats R] [--threads T]

Times are medians of interleaved draws on the keystream of production. The table compares flat
scores with one tall peak (the ratio should lie within 0.9 and 1.1) and both selectors with each
other. Ratios are of processor time, which other work on the machine disturbs least. Everything is
written to ``benchmarks/results/draws.json`` too.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from app.engine.execution import ThreadExecutor
from mechanisms.model.executor import Executor, Inline
from mechanisms.noise.addition import Integers
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import score_bits
from mechanisms.selection import SELECTORS, Draws

RESULTS = Path(__file__).parent / "results"
LOSS = PrivacyLoss.parse("1")
SHAPES = ("flat", "peaked", "spread")
#: (selector, k, draws)
KINDS: tuple[tuple[str, int, Draws], ...] = (
    ("permute_and_flip", 1, "peeled"),
    ("permute_and_flip", 10, "one_shot"),
    ("exponential", 1, "peeled"),
    ("exponential", 10, "one_shot"),
)


def shapes(n: int) -> dict[str, Integers]:
    """Score vectors that a careless draw would betray by its time."""
    flat = np.zeros(n, dtype=np.int64)
    peaked = flat.copy()
    peaked[n // 2] = 1 << 40
    spread = np.arange(n, dtype=np.int64) << 10
    return dict(zip(SHAPES, (flat, peaked, spread), strict=True))


@dataclass(frozen=True)
class Time:
    """Medians, in seconds."""

    wall: float
    processor: float


def interleaved(draws: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, Time]:
    """The times of each, all of them once in every round."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in draws}
    for draw in draws.values():
        draw()
    for _ in range(repeats):
        for name, draw in draws.items():
            wall, processor = perf_counter(), process_time()
            draw()
            times[name].append((perf_counter() - wall, process_time() - processor))
    return {name: Time(*map(median, zip(*series, strict=True))) for name, series in times.items()}


def measure(n: int, repeats: int, executor: Executor) -> dict[str, dict[str, Time]]:
    """Times by kind of draw and shape of scores."""
    randomness = SystemRandomness()
    measured = {}
    for name, k, draws in KINDS:
        top = SELECTORS[name].top
        of_each = {
            shape: partial(top, scores, score_bits(k), LOSS, k, draws, randomness, executor)
            for shape, scores in shapes(n).items()
        }
        measured[f"{name}, k = {k}"] = interleaved(of_each, repeats)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=10**6, help="of the longer vector")
    parser.add_argument("--repeats", type=int, default=31, help="interleaved draws at 10^5")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    executor: Executor = Inline() if options.threads == 1 else ThreadExecutor(options.threads)
    results = {}
    for n, repeats in [(10**5, options.repeats), (options.candidates, 5)]:
        measured = results[str(n)] = measure(n, repeats, executor)
        unit = measured["permute_and_flip, k = 1"]["flat"].processor
        print(f"\n{n:,} candidates, {options.threads} thread(s), medians of {repeats}")
        print(f"{'':26}{'flat ms':>9}{'peaked/flat':>13}{'spread/flat':>13}{'of the first':>14}")
        for kind, times in measured.items():
            flat, peaked, spread = (times[shape].processor for shape in SHAPES)
            print(
                f"{kind:26}{times['flat'].wall * 1e3:9.2f}{peaked / flat:13.3f}"
                f"{spread / flat:13.3f}{flat / unit:14.2f}"
            )
    RESULTS.mkdir(exist_ok=True)
    seconds = {
        n: {
            kind: {shape: asdict(time) for shape, time in times.items()}
            for kind, times in kinds.items()
        }
        for n, kinds in results.items()
    }
    written = {"threads": options.threads, "repeats": options.repeats, "seconds": seconds}
    (RESULTS / "draws.json").write_text(json.dumps(written, indent=2) + "\n")


if __name__ == "__main__":
    main()
