"""How long discrete Gaussian noise takes, beside discrete Laplace noise of the same deviation.

One vector of a million zeros gets noise from the keystream of production, on one thread. Seconds
are those of a processor, and draws are interleaved.
"""

from functools import partial

import numpy as np

from benchmarks.bench import Bar, Bench, Setting
from benchmarks.result import Result
from benchmarks.rounds import Rounds, processor
from mechanisms.model.executor import Inline
from mechanisms.noise.discrete_gaussian import GRID, Deviation, discrete_gaussian
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate

#: σ in steps of 1/1024: from less than one to ten thousand.
DEVIATIONS = {"0.5": GRID // 2, "1": GRID, "14": 14 * GRID, "100": 100 * GRID, "10⁴": 10**4 * GRID}


def run(result: Result, setting: Setting) -> None:
    n = setting.size(1_000_000, 100_000)
    zeros, randomness = np.zeros(n, dtype=np.int64), SystemRandomness()
    for name, steps in DEVIATIONS.items():
        # Laplace noise of rate λ has about the deviation √2/λ.
        rate = Rate(1_000_000 * GRID, round(1_000_000 * steps / 2**0.5))
        ways = {
            "Gaussian": processor(
                partial(discrete_gaussian, zeros, Deviation(steps), randomness, Inline())
            ),
            "Laplace": processor(partial(discrete_laplace, zeros, rate, randomness, Inline())),
        }
        rounds = Rounds.of("seconds of a processor", ways, setting.times(5))
        rounds.report(result, f"{n:,} values, σ = {name}")
        result.measure(f"σ = {name}: Gaussian / Laplace", rounds.ratio("Gaussian", "Laplace"), "×")


BENCHES = (
    Bench(
        "noise",
        "How long does Gaussian noise take beside Laplace noise?",
        run,
        35.0,
        ("discrete Laplace noise of the same deviation",),
        (Bar("*: Gaussian / Laplace", most=6.0),),
    ),
)
