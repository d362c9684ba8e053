"""What an experiment leaves behind: plots, tables and claims, as they lie in its result file.

A value is a pair (mean, half): half the width of a 99 % interval, 0 where the value is exact, None
where it is a time, which no seed repeats. The report shows these and works nothing out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from math import floor, log10
from typing import Any, Self

import numpy as np

Estimate = tuple[float, float]
Value = Estimate | tuple[float, None]
Lines = Mapping[str, Sequence[Estimate] | Sequence[Value]]
#: A cell of a table: text, a whole number, an exact number, or a mean with its interval.
Cell = str | int | float | Value


class Verdict(StrEnum):
    HOLDS = "holds"
    OTHERWISE = "holds with other numbers"
    FAILS = "does not hold"
    #: The confidence interval allows both that the claim holds and that it does not.
    OPEN = "not decided by these repetitions"


HOLDS, OTHERWISE, FAILS, OPEN = Verdict


@dataclass(frozen=True)
class Plot:
    """Lines over one axis; ``ticks`` are marks of the other one."""

    title: str
    across: str
    up: str
    at: Sequence[float]
    lines: Lines
    ticks: Sequence[float]
    logarithmic: bool = True
    logarithmic_up: bool = False


@dataclass(frozen=True)
class Table:
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Difference:
    """How much larger a value is than another: ``value`` ± ``half``; less than ``equal`` is none.

    ``enough``: the least difference that confirms the numbers of the claim as well.
    """

    value: float
    half: float
    equal: float
    enough: float = 0.0

    @classmethod
    def no_less(cls, value: float, half: float, equal: float) -> Self:
        """To be less by no more than ``equal``: twice that is added, for the verdict to say so."""
        return cls(value + 2 * equal, half, equal)

    @property
    def verdict(self) -> Verdict:
        """Decided wherever the interval is no wider than ``equal``, so by enough repetitions."""
        if self.value + self.half < self.equal:
            return FAILS
        if self.value - self.half < 0:
            return OPEN
        return HOLDS if self.value >= self.enough else OTHERWISE

    @property
    def rule(self) -> str:
        enough = f"; at least {self.enough:g} confirms its numbers" if self.enough else ""
        return f"a difference below {self.equal:g} counts as equal{enough}"


@dataclass(frozen=True)
class Claim:
    """What a paper says, what was seen, and whether the two agree.

    ``difference``: the number from which the verdict follows by a stated rule, where it does.
    """

    says: str
    seen: str
    verdict: Verdict
    why: str = ""
    difference: Difference | None = None


@dataclass(frozen=True)
class Measurement:
    """A value that a bar may bound: with half the width of its 99 % interval where it is sampled,
    and its unit, "×" for a ratio."""

    value: float
    unit: str = ""
    half: float = 0.0

    def __str__(self) -> str:
        half = f" ± {self.half:.3g}" if self.half else ""
        return f"{self.value:.4g}{half} {self.unit}".rstrip()


@dataclass
class Result:
    plots: list[Plot] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    #: Numbers and lists of this experiment that later experiments read, by name.
    stored: dict[str, Any] = field(default_factory=dict)
    #: The measured values, by name. Each may have a bar, a bound that it must keep. ``unjudged``
    #: has the reasons why some values cannot be measured here.
    measured: dict[str, Measurement] = field(default_factory=dict)
    unjudged: dict[str, str] = field(default_factory=dict)

    def measure(self, name: str, value: float, unit: str = "", half: float = 0.0) -> None:
        self.measured[name] = Measurement(float(value), unit, float(half))

    def estimate(self, name: str, values: Any, unit: str = "") -> None:
        """The mean of independent repetitions with its interval."""
        value, half = mean(values)
        self.measure(name, value, unit, half)

    def plot(
        self,
        title: str,
        up: str,
        at: Sequence[float],
        lines: Lines,
        across: str = "ε",
        logarithmic: bool = True,
        logarithmic_up: bool = False,
    ) -> None:
        ticks = marks([v for line in lines.values() for v, _ in line], logarithmic_up)
        self.plots.append(
            Plot(title, across, up, list(at), lines, ticks, logarithmic, logarithmic_up)
        )

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        self.tables.append(Table(title, columns, rows))

    def claim(self, says: str, seen: str, verdict: Verdict, why: str = "") -> None:
        """Judge a claim of the paper; ``why`` is the reason unless it simply holds."""
        if verdict is not HOLDS and not why:
            raise ValueError(f"a claim that does not simply hold needs a reason: {says}")
        self.claims.append(Claim(says, seen, verdict, "" if verdict is HOLDS else why))

    def compare(self, says: str, seen: str, difference: Difference, why: str) -> None:
        """Judge a claim that one value is larger than another by the rule of ``difference``."""
        verdict = difference.verdict
        stated = "" if verdict is HOLDS else f"{why}; {difference.rule}"
        self.claims.append(Claim(says, seen, verdict, stated, difference))

    def written(self) -> dict[str, Any]:
        return asdict(self)


def exact(values: Iterable[float]) -> list[Estimate]:
    return [(float(value), 0.0) for value in values]


def mean(values: Any, confidence: float = 0.99) -> Estimate:
    """The mean of independent repetitions with its interval, by Student's t."""
    from scipy.special import stdtrit

    listed = np.asarray(values, dtype=float).ravel()
    if len(listed) < 2:
        raise ValueError("an interval needs two repetitions at least")
    wide = stdtrit(len(listed) - 1, (1 + confidence) / 2)
    half = wide * listed.std(ddof=1) / len(listed) ** 0.5
    return float(listed.mean()), float(half)


def median(values: Any) -> Estimate:
    """The median of independent repetitions, and how far its interval of ranks reaches."""
    from scipy.stats import binom

    listed = np.sort(np.asarray(values, dtype=float).ravel())
    count = len(listed)
    low = max(int(binom.ppf(0.005, count, 0.5)) - 1, 0)
    middle = float(np.median(listed))
    return middle, float(max(middle - listed[low], listed[count - 1 - low] - middle))


def timed(seconds: float) -> Value:
    return seconds, None


def marks(values: Sequence[float], logarithmic: bool) -> list[float]:
    """Three to seven round marks that enclose the finite values."""
    finite = [v for v in values if np.isfinite(v) and (v > 0 or not logarithmic)]
    if not finite:
        return [0.0, 1.0] if not logarithmic else [1.0, 10.0]
    low, high = min(finite), max(finite)
    if logarithmic:
        least, most = floor(log10(low)), -floor(-log10(high))
        apart = max(1, -((least - most - 1) // 6))
        return [float(f"1e{power}") for power in range(least, most + apart, apart)]
    span = high - low or abs(high) or 1.0
    step = next(
        size
        for power in range(floor(log10(span)) - 2, floor(log10(span)) + 2)
        for size in (float(f"{base}e{power}") for base in (1, 2, 5))
        if span / size <= 5
    )
    # A plot axis begins and ends at a mark, a multiple of ``step``. The tolerance of 1e-6 steps
    # keeps a rounding error from adding a further mark at an end.
    first = floor(low / step + 1e-6)
    last = -floor(-high / step + 1e-6)
    return [float(f"{number * step:.12g}") for number in range(first, max(last, first + 1) + 1)]
