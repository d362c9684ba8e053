"""How long a draw takes, that its time does not depend on the scores, and OpenDP's noisy max.

Draws are interleaved, on the keystream of production. All are compared in seconds of a processor,
which other work on the machine disturbs least. OpenDP draws the same law, permute-and-flip, from
the same array of whole numbers on one thread; lists would take it ten times as long.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.result import Result
from benchmarks.rounds import Rounds, processor
from mechanisms.model.executor import Inline
from mechanisms.noise.addition import Integers
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import Rate, score_bits
from mechanisms.selection import SELECTORS, Draws

LOSS = PrivacyLoss.parse("1")
#: One kind of draw: the selector, the number k of drawn candidates, and whether the k are drawn one
#: after another (peeled) or in one shot.
Kind = tuple[str, int, Draws]
PEELED: Kind = ("permute_and_flip", 10, "peeled")
RACE: Kind = ("exponential", 10, "one_shot")
KINDS: tuple[Kind, ...] = (
    ("permute_and_flip", 1, "peeled"),
    PEELED,
    ("permute_and_flip", 10, "one_shot"),
    ("exponential", 1, "peeled"),
    RACE,
)


def shapes(n: int) -> dict[str, Integers]:
    """Score vectors that a careless draw would betray by its time."""
    flat = np.zeros(n, dtype=np.int64)
    peaked = flat.copy()
    peaked[n // 2] = 1 << 40
    spread = np.arange(n, dtype=np.int64) << 10
    return {"flat": flat, "peaked": peaked, "spread": spread}


def ours(scores: Integers, selector: str, k: int, draws: Draws) -> Callable[[], object]:
    return partial(SELECTORS[selector].top, scores, score_bits(k), LOSS, k, draws,
                   SystemRandomness(), Inline())  # fmt: skip


def opendp(scores: Integers) -> Callable[[], object]:
    """OpenDP's noisy max with exponential noise of our rate, over the same whole numbers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    rate = Rate.of(LOSS.epsilon_nano, score_bits(1))
    domain, metric = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.linf_distance(T=dp.i64)
    select = dp.m.make_noisy_max(domain, metric, dp.max_divergence(), scale=rate.b / rate.a)
    return lambda: select(scores)


def title(selector: str, k: int, draws: Draws) -> str:
    return f"{selector}, k = {k}, {draws}" if k > 1 else selector


def run(result: Result, setting: Setting) -> None:
    n = setting.size(1_000_000, 100_000)
    by_shape = shapes(n)
    for kind in KINDS:
        name = title(*kind)
        ways = {shape: processor(ours(scores, *kind)) for shape, scores in by_shape.items()}
        rounds = Rounds.of("seconds of a processor", ways, setting.times(7))
        rounds.report(result, f"{name}, {n:,} candidates")
        for shape in ("peaked", "spread"):
            result.measure(f"{name}: {shape} / flat", rounds.ratio(shape, "flat"), "×")
    flat = by_shape["flat"]
    ways = {title(*kind): processor(ours(flat, *kind)) for kind in KINDS}
    ways["OpenDP"] = processor(opendp(flat))
    rounds = Rounds.of("seconds of a processor", ways, setting.times(7))
    rounds.report(result, "selectors beside OpenDP")
    for kind in KINDS:
        result.measure(f"OpenDP / {title(*kind)}", rounds.ratio("OpenDP", title(*kind)), "×")
    result.measure("10 peeled / 10 in a race", rounds.ratio(title(*PEELED), title(*RACE)), "×")
    result.measure("longest draw of one", max(rounds.median(title(*k)) for k in KINDS if k[1] == 1),
                   "s")  # fmt: skip


BENCHES = (
    Bench(
        "draws",
        "How long does a draw take, and does its time depend on the scores?",
        run,
        90.0,
        ("OpenDP's noisy max", "the same draw on scores of another shape"),
        (
            Bar("*: peaked / flat", least=0.9, most=1.1),
            Bar("*: spread / flat", least=0.9, most=1.1),
            Bar("longest draw of one", most=0.3),
            Bar("10 peeled / 10 in a race", most=4.0),
            Bar("OpenDP / permute_and_flip", least=1.5),
        ),
    ),
)
