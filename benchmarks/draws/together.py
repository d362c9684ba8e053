"""How long draws of several candidates together take: sets and noisy vectors.

Work is in seconds of a processor, on the keystream of production and one thread. A set is tossed
until exactly k coins show heads, so its work varies and its median counts. Its public deadline
holds the rounds that suffice except with probability 2^−64; it is that of the whole query, by the
speeds that a service on this machine would use.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from app.config.settings import Settings
from app.engine.deadlines import Clock
from app.queries.parts.cost import Speeds
from app.queries.top_k.body import TopK
from app.service.speeds import MachineSpeeds
from benchmarks.bench import Bar, Bench, Setting
from benchmarks.data.graphs import graph_dataset
from benchmarks.result import Result
from benchmarks.rounds import Rounds, processor
from mechanisms.model.executor import Inline
from mechanisms.model.joint_influence import Together
from mechanisms.noise.addition import Integers
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.noise.rate import score_bits
from mechanisms.selection import LAPLACE, SUBSET

LOSS = PrivacyLoss.parse("0.1")
K = 10
#: The numbers of candidates are the nodes of the github graph and a million. BOUND is the public
#: bound on the degrees of nodes.
SIZES, BOUND = (37_700, 1_000_000), 10_000
#: For each selector, a utility for which a query without options (selector ``auto``) takes this
#: selector.
UTILITIES = {"laplace": "degree", "subset": "egocentric_betweenness"}


def shapes(n: int) -> dict[str, Integers]:
    """Degrees: all alike, and with a heavy tail as in real graphs."""
    tail = np.random.default_rng(1).pareto(1.5, n)
    return {
        "flat": np.zeros(n, dtype=np.int64),
        "heavy tail": np.minimum((3 * tail).astype(np.int64) + 1, BOUND),
    }


def draws(degrees: Integers) -> dict[str, Callable[[], object]]:
    """By selector: one draw of the k best."""
    n, bits, source = degrees.size, score_bits(K), SystemRandomness()
    whole, fine = Together(n, 1, moving=2), Together(n, 1 << bits, moving=2)
    return {
        "laplace": partial(LAPLACE.top, degrees, whole, LOSS, K, source, Inline()),
        "subset": partial(SUBSET.top, degrees << bits, fine, LOSS, K, source),
    }


def run(result: Result, setting: Setting) -> None:
    speeds = speeds_of_machine()
    for n in SIZES:
        ways = {
            f"{selector}, {shape}": processor(draw)
            for shape, degrees in shapes(n).items()
            for selector, draw in draws(degrees).items()
        }
        rounds = Rounds.of("seconds of a processor", ways, setting.times(21))
        rounds.report(result, f"{n:,} candidates")
        for way in ways:
            result.measure(f"{way}, {n:,} candidates: work", rounds.median(way), "s")
        for selector, utility in UTILITIES.items():
            seconds, deadline = public(speeds, n, selector, utility)
            result.measure(f"{selector}, {n:,} candidates: public cost", seconds, "s")
            result.measure(f"{selector}, {n:,} candidates: public deadline", deadline, "s")


def speeds_of_machine() -> Speeds:
    machine = MachineSpeeds()
    deque(machine.steps(), maxlen=0)
    assert machine.current is not None
    return machine.current


def public(speeds: Speeds, n: int, selector: str, utility: str) -> tuple[float, float]:
    """The cost of a query without options and its deadline, by this machine's speeds."""
    named = {"kind": "top_k", "k": K, "utilities": ({"name": utility},)}
    body = TopK.model_validate(named)
    dataset = graph_dataset("public", n, BOUND)
    if body.price(dataset, LOSS).resolved["selector"] != selector:
        raise ValueError(f"auto does not take {selector} for {utility}")
    seconds = speeds.seconds(body.work(dataset, LOSS))
    return seconds, Clock(Settings.model_fields["release_interval"].default).length(seconds)


BENCHES = (
    Bench(
        "draws.together",
        "How long do draws of several candidates together take, and when do they answer?",
        run,
        60.0,
        ("each other, on scores of two shapes",),
        (
            Bar("laplace, *, 1,000,000 candidates: work", most=0.15),
            Bar("subset, 1,000,000 candidates: public deadline", most=2.0),
            Bar("subset, 37,700 candidates: public deadline", most=0.06),
            Bar("subset, *, 1,000,000 candidates: work", most=0.15),
        ),
    ),
)
