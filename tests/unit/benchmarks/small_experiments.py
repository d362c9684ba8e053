"""Experiments for the tests of the runner: one that ends at once, and some that take a while."""

from __future__ import annotations

import time

from benchmarks.reproduction.experiment import Experiment, Setting
from benchmarks.reproduction.result import Result, Verdict, exact, mean
from benchmarks.simulation import randomness

PAPER = "A paper"


def drawn(setting: Setting) -> Result:  # noqa: ARG001 - it needs no data
    result = Result()
    words = randomness().stream().words(40) / 2.0**64
    result.plot("uniform", "mean", [1.5, 2.5], {"line": [mean(words), mean(words[:20])]})
    result.plot("known", "value", [0.125, 0.25], {"line": exact([0.4375, 0.5625])})
    result.table("both", ["what", "value"], [["mean", mean(words)], ["seven", 7]])
    result.claim(PAPER, "the mean is 0.5", f"{words.mean():.4f}", Verdict.HOLDS)
    result.kept["words"] = words.tolist()
    return result


def slow(setting: Setting) -> Result:
    time.sleep(1.5)
    return drawn(setting)


def later(setting: Setting) -> Result:
    result = Result()
    result.table("of an earlier one", ["words"], [[len(setting.earlier["first"]["words"])]])
    return result


def broken(setting: Setting) -> Result:
    raise ValueError(f"there is no {setting.data.name}")


EXPERIMENTS = (
    Experiment("first", "At once", PAPER, (), drawn, 9.0),
    Experiment("second", "A while", PAPER, (), slow, 5.0),
    Experiment("third", "A while too", PAPER, (), slow, 4.0),
    Experiment("later", "Needs the first", PAPER, (), later, 1.0, ("first",)),
)
BROKEN = Experiment("broken", "Fails", PAPER, (), broken, 1.0)
