"""What a bench is: a question, a function that measures, and the bars that its values must keep.

The papers' experiments are benches too: they name their paper, and judge by claims of their own.
The expected seconds of a processor order the work (the longest first) and foretell its end; they
decide nothing else.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.result import (
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Difference,
    Measurement,
    Result,
    Verdict,
    mean,
)

#: The rival of benches that ``--before DIR`` has measure another checkout in the same rounds.
BEFORE = "the tree before (--before DIR)"


@dataclass(frozen=True)
class Setting:
    """Where the data lie, the seed of the simulation, and how much to repeat.

    ``earlier`` holds what the experiments that this one needs have stored, by name. ``before`` is
    another checkout, to be measured beside this one.
    """

    data: Path
    seed: int = 1
    quick: bool = False
    #: Repetitions in multiples of the usual.
    more: int = 1
    earlier: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    before: Path | None = None
    #: Repeat what decides a claim until it is decided.
    full: bool = False

    def narrowed(
        self,
        values: Sequence[float],
        draw: Callable[[], float],
        equal: float,
        no_less: bool = False,
    ) -> list[float]:
        """These repetitions of a difference and, in a full run, as many more as decide it.

        The number doubles until ``Difference.verdict`` is not open. It ends: an interval that is
        narrower than ``equal`` decides.
        """
        listed = [float(value) for value in values]
        difference = Difference.no_less if no_less else Difference
        while self.full and difference(*mean(listed), equal).verdict is OPEN:
            listed += [draw() for _ in range(len(listed))]
        return listed

    def compare(
        self,
        result: Result,
        says: str,
        seen: Callable[[float, float], str],
        gaps: Sequence[float],
        draw: Callable[[], float],
        equal: float,
        why: str,
        no_less: bool = False,
        enough: float = 0.0,
    ) -> None:
        """Judge a claim by repetitions of a difference, with ``Result.compare``.

        Args:
            seen: what was seen, from the mean difference and half of its interval.
            draw: one further repetition, as for ``narrowed``.
            no_less: the claim is that the difference is not negative, and not that it is positive.
        """
        value, half = mean(self.narrowed(gaps, draw, equal, no_less))
        if no_less:
            difference = Difference.no_less(value, half, equal)
        else:
            difference = Difference(value, half, equal, enough)
        result.compare(says, seen(value, half), difference, why)

    def times(self, usual: int) -> int:
        return 3 if self.quick else usual * self.more

    def fewer(self, usual: Sequence[Any]) -> list[Any]:
        """All of them, or three when it has to be quick."""
        return [usual[0], usual[len(usual) // 2], usual[-1]] if self.quick else list(usual)

    def size(self, usual: int, quick: int) -> int:
        """How large something is made."""
        return quick if self.quick else usual


@dataclass(frozen=True)
class Bar:
    """A bound on a measured value, by name, or on all whose names match a pattern with ``*``."""

    value: str
    least: float | None = None
    most: float | None = None
    #: Whether the value compares with the tree before, so that it takes ``--before DIR``.
    before: bool = False

    def bounds(self, name: str) -> bool:
        return fnmatchcase(name, self.value) if "*" in self.value else name == self.value

    def of(self, name: str) -> str:
        bounds = [f"≥ {self.least:g}"] if self.least is not None else []
        bounds += [f"≤ {self.most:g}"] if self.most is not None else []
        return f"{name} {' and '.join(bounds)}"

    def verdict(self, measured: Measurement) -> Verdict:
        """FAILS when the whole interval is beyond the bar, OPEN when the bar lies inside it."""
        low, high = measured.value - measured.half, measured.value + measured.half
        least = self.least if self.least is not None else -float("inf")
        most = self.most if self.most is not None else float("inf")
        if high < least or low > most or measured.value != measured.value:
            return FAILS
        return HOLDS if least <= low and high <= most else OPEN


@dataclass(frozen=True)
class Bench:
    name: str
    question: str
    #: A function of a module, or ``partial`` of one: other processes find it by its name.
    run: Callable[[Result, Setting], None]
    seconds: float
    #: What is measured in the same run, to compare with.
    rivals: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    #: Files of the data folder that it reads.
    files: tuple[str, ...] = ()
    #: The paper whose claims it judges; empty for a bench of our own.
    paper: str = ""
    #: Experiments whose results it reads.
    needs: tuple[str, ...] = ()

    def measure(self, setting: Setting) -> Result:
        """Run it on a new result."""
        result = Result()
        self.run(result, setting)
        return result

    def own_seed(self, seed: int) -> int:
        """Its own stream for each seed of a whole run."""
        text = f"{seed}/{self.name}".encode()
        return int.from_bytes(hashlib.sha256(text).digest()[:8])

    def judged(self, result: Result, setting: Setting) -> list[Claim]:
        """One claim per bar and value. A bar without a value fails, unless the result or the
        setting says why there is none."""
        claims = []
        for bar in self.bars:
            names = [name for name in result.measured if bar.bounds(name)]
            for name in names:
                measured = result.measured[name]
                verdict = bar.verdict(measured)
                why = "" if verdict is HOLDS else "beyond the bar, or not clear of it"
                claims.append(Claim(bar.of(name), str(measured), verdict, why))
            if not names:
                claims.append(_without_value(bar, result, setting))
        return claims


def _without_value(bar: Bar, result: Result, setting: Setting) -> Claim:
    why = result.unjudged.get(bar.value, "")
    if bar.before and setting.before is None:
        why = "it takes --before DIR"
    elif setting.quick and not why:
        why = "--quick leaves it out"
    return Claim(
        bar.of(bar.value), "not measured", OPEN if why else FAILS, why or "nothing measured it"
    )


def for_each(
    name: str,
    title: str,
    run: Callable[..., None],
    paper: str,
    seconds: Mapping[str, float],
    files: Callable[[str], tuple[str, ...]] = lambda _: (),
    **more: Any,
) -> tuple[Bench, ...]:
    """One bench for each graph, table or database, whose name ``run`` takes as ``name``."""
    return tuple(
        Bench(f"{name}.{one}", title.format(one), partial(run, name=one), expected,
              paper=paper, files=files(one), **more)
        for one, expected in seconds.items()
    )  # fmt: skip


def missing(data: Path, benches: Sequence[Bench]) -> dict[str, list[str]]:
    """Of each bench that cannot run, the files that are not there."""
    lacking = {e.name: [f for f in e.files if not (data / f).is_file()] for e in benches}
    return {name: absent for name, absent in lacking.items() if absent}


def edges_of(*graphs: str) -> tuple[str, ...]:
    """The files of the data folder that hold these graphs."""
    return tuple(f"{graph}.edges.csv.gz" for graph in graphs)


def rows_of(*tables: str) -> tuple[str, ...]:
    """The files of the data folder that hold these tables."""
    return tuple(f"{table}.{end}" for table in tables for end in ("csv.gz", "schema.json"))
