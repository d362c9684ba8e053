"""A bench: a question, a function that measures, and bars, the bounds on the measured values.

An experiment that repeats one of a paper is a bench too. It names the paper, and judges the claims
of the paper instead of bars. Each bench states the seconds of one processor that it is expected to
take. The longest bench starts first, and the end of the whole run is predicted from these seconds;
no verdict depends on them.
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

#: The name of one more rival of a bench, which ``--before DIR`` adds: another checkout of this
#: project, in DIR, which is measured in the same rounds.
BEFORE = "the tree before (--before DIR)"


@dataclass(frozen=True)
class Setting:
    """The folder of the data, the seed of all random draws, and the number of repetitions.

    ``earlier``: the stored values of the experiments whose results this one needs, by name.
    ``before``: another checkout, which is measured in the same run to compare with this one.
    """

    data: Path
    seed: int = 1
    quick: bool = False
    #: The factor by which every number of repetitions is multiplied, as ``--more`` says.
    more: int = 1
    earlier: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    before: Path | None = None
    #: Whether an undecided claim is measured again until the confidence interval of the mean
    #: decides it.
    full: bool = False

    def narrowed(
        self,
        values: Sequence[float],
        draw: Callable[[], float],
        equal: float,
        no_less: bool = False,
    ) -> list[float]:
        """The given repetitions of a difference; in a full run, with further ones by ``draw``.

        The number of repetitions doubles until the interval of their mean decides the claim
        (``Difference.verdict``). This ends, because an interval narrower than ``equal`` decides.
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
            seen: makes the text of what was measured from the mean difference and half the length
                of its interval.
            draw: measures one further repetition, as for ``narrowed``.
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
        """All values; in a quick run only the first, the middle and the last."""
        return [usual[0], usual[len(usual) // 2], usual[-1]] if self.quick else list(usual)

    def size(self, usual: int, quick: int) -> int:
        """The size of made-up data: ``usual``, or ``quick`` in a quick run."""
        return quick if self.quick else usual


@dataclass(frozen=True)
class Bar:
    """A bound on a measured value, by name, or on all whose names match a pattern with ``*``."""

    value: str
    least: float | None = None
    most: float | None = None
    #: Whether the value compares this checkout with another one, so that it exists only with
    #: ``--before DIR``.
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
    #: A function at the top level of a module, or a ``partial`` of one. Other processes import it
    #: by its name.
    run: Callable[[Result, Setting], None]
    seconds: float
    #: The names of other programs or methods that are measured in the same run, to compare with.
    rivals: tuple[str, ...] = ()
    bars: tuple[Bar, ...] = ()
    #: The files of the data folder that the bench reads.
    files: tuple[str, ...] = ()
    #: The paper whose claims the bench judges; empty for a bench of the project's own.
    paper: str = ""
    #: The names of experiments whose stored results this one reads, so they run first.
    needs: tuple[str, ...] = ()

    def measure(self, setting: Setting) -> Result:
        """Run the bench, and return what it measured."""
        result = Result()
        self.run(result, setting)
        return result

    def own_seed(self, seed: int) -> int:
        """The seed of this bench in a run with this seed; each bench has a different one."""
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
    """The missing files of each bench that cannot run without them, by the name of the bench."""
    lacking = {e.name: [f for f in e.files if not (data / f).is_file()] for e in benches}
    return {name: absent for name, absent in lacking.items() if absent}


def edges_of(*graphs: str) -> tuple[str, ...]:
    """The files of the data folder that hold these graphs."""
    return tuple(f"{graph}.edges.csv.gz" for graph in graphs)


def rows_of(*tables: str) -> tuple[str, ...]:
    """The files of the data folder that hold these tables."""
    return tuple(f"{table}.{end}" for table in tables for end in ("csv.gz", "schema.json"))
