"""How long discrete noise takes, beside NumPy's generator of floats and OpenDP's exact sampler.

One vector of a million zeros gets noise from the keystream of production, on one thread. Seconds
are those of a processor, and draws are interleaved. NumPy's noise is no rival in privacy: it comes
from a predictable generator and is a rounded float. OpenDP takes fewer values, and its seconds are
those of as many values as ours.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.bench import Bar, Bench, Setting
from benchmarks.result import Result
from benchmarks.rounds import Rounds, Way, processor
from mechanisms.model.executor import Inline
from mechanisms.noise.discrete_gaussian import GRID, Deviation, discrete_gaussian
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate

#: Standard deviations σ of the noise by their labels, as multiples of 1/1024.
DEVIATIONS = {"0.5": GRID // 2, "1": GRID, "14": 14 * GRID, "100": 100 * GRID, "10⁴": 10**4 * GRID}


#: OpenDP is slow. It draws this many times fewer values, and its time is multiplied by as much.
FEWER = 20


def by_numpy(n: int, kind: str, scale: float) -> Callable[[], object]:
    generator = np.random.default_rng(1)
    draw = generator.normal if kind == "Gaussian" else generator.laplace
    return lambda: np.rint(draw(0.0, scale, n)).astype(np.int64)


def by_opendp(n: int, kind: str, scale: float) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=dp.i64), size=n)
    if kind == "Gaussian":
        add = dp.m.make_gaussian(domain, dp.l2_distance(T=dp.f64), scale=scale)
    else:
        add = dp.m.make_laplace(domain, dp.l1_distance(T=dp.i64), scale=scale)
    zeros = [0] * n
    return lambda: add(zeros)


def run(result: Result, setting: Setting) -> None:
    n = setting.size(1_000_000, 100_000)
    zeros, randomness = np.zeros(n, dtype=np.int64), SystemRandomness()
    for name, steps in DEVIATIONS.items():
        # Laplace noise of rate λ has a standard deviation of about √2/λ, so this λ gives about the
        # same σ.
        rate = Rate(1_000_000 * GRID, round(1_000_000 * steps / 2**0.5))
        scales = {"Gaussian": steps / GRID, "Laplace": rate.b / rate.a}
        ways: dict[str, Way] = {
            "Gaussian": processor(
                partial(discrete_gaussian, zeros, Deviation(steps), randomness, Inline())
            ),
            "Laplace": processor(partial(discrete_laplace, zeros, rate, randomness, Inline())),
        }
        for kind, scale in scales.items():
            ways[f"{kind}, NumPy"] = processor(by_numpy(n, kind, scale))
            ways[f"{kind}, OpenDP"] = times(FEWER, processor(by_opendp(n // FEWER, kind, scale)))
        rounds = Rounds.of("seconds of a processor", ways, setting.times(5))
        rounds.report(result, f"{n:,} values, σ = {name}")
        result.measure(f"σ = {name}: Gaussian / Laplace", rounds.ratio("Gaussian", "Laplace"), "×")
        for kind in scales:
            for rival in ("NumPy", "OpenDP"):
                ratio = rounds.ratio(f"{kind}, {rival}", kind)
                result.measure(f"σ = {name}: {rival} / {kind}", ratio, "×")


def times(factor: int, way: Way) -> Way:
    return lambda: factor * way()


BENCHES = (
    Bench(
        "noise",
        "How long does discrete noise take beside other generators of noise?",
        run,
        120.0,
        ("NumPy's floats, rounded", "OpenDP's discrete noise", "each other"),
        (
            Bar("*: Gaussian / Laplace", most=6.0),
            Bar("*: OpenDP / Gaussian", least=10.0),
            Bar("*: OpenDP / Laplace", least=10.0),
        ),
    ),
)
