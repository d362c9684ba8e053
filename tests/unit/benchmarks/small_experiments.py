"""Experiments and a bench for tests: some end at once, and some take a while."""

from __future__ import annotations

import time

from benchmarks.bench import Bench, Setting
from benchmarks.result import HOLDS, Difference, Result, exact, mean
from benchmarks.rounds import Rounds
from benchmarks.simulation import randomness

PAPER = "A paper"


def drawn(result: Result, setting: Setting) -> None:  # noqa: ARG001 - it needs no data
    words = randomness().stream().words(40) / 2.0**64
    result.plot("uniform", "mean", [1.5, 2.5], {"line": [mean(words), mean(words[:20])]})
    result.plot("known", "value", [0.125, 0.25], {"line": exact([0.4375, 0.5625])})
    result.table("both", ["what", "value"], [["mean", mean(words)], ["seven", 7]])
    result.claim("the mean is 0.5", f"{words.mean():.4f}", HOLDS)
    result.stored["words"] = words.tolist()


def compared(result: Result, setting: Setting) -> None:
    """A difference of 0.02 of noisy values, which few repetitions do not tell from none."""
    words = iter(range(10_000))

    def draw() -> float:
        return 0.02 + (-1) ** next(words) * 0.3

    gaps = setting.narrowed([draw() for _ in range(6)], draw, 0.1)
    value, half = mean(gaps)
    result.compare("ours is larger", f"{len(gaps)} runs", Difference(value, half, 0.1), "it is not")


def slow(result: Result, setting: Setting) -> None:
    time.sleep(1.5)
    drawn(result, setting)


def later(result: Result, setting: Setting) -> None:
    result.table("of an earlier one", ["words"], [[len(setting.earlier["first"]["words"])]])


def broken(result: Result, setting: Setting) -> None:  # noqa: ARG001
    raise ValueError(f"there is no {setting.data.name}")


def ratios(result: Result, setting: Setting) -> None:
    ways = {"ours": lambda: 6.0, "rival": lambda: 2.0}
    outcome = Rounds.of("a second", ways, setting.times(5)).report(result, "rates")
    result.measure("ours / rival", outcome.ratio("ours", "rival"), "×")
    result.plot("rates", "a second", [1.0, 2.0], {"ours": exact([6.0, 6.0])})
    if setting.before is not None:
        result.measure("ours / before", 0.5, "×")


EXPERIMENTS = (
    Bench("first", "At once", drawn, 9.0, paper=PAPER),
    Bench("second", "A while", slow, 5.0, paper=PAPER),
    Bench("third", "A while too", slow, 4.0, paper=PAPER),
    Bench("later", "Needs the first", later, 1.0, paper=PAPER, needs=("first",)),
)
COMPARED = Bench("compared", "Open at first", compared, 1.0, paper=PAPER)
BROKEN = Bench("broken", "Fails", broken, 1.0, paper=PAPER)
