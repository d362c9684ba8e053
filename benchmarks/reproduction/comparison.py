"""Whether two runs with different seeds agree within their intervals.

Two means agree when they differ by no more than their 99 % intervals together, √(h₁² + h₂²). Of
many pairs about one in a hundred does not, by chance. So no more may lie outside than would in one
of ten thousand comparisons, and no pair may be further off than that either: Bonferroni's bound
over all pairs, of Student's law for five repetitions each, the fewest that there are. Exact values
must be the same. Times are not compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import hypot, isclose
from pathlib import Path
from typing import Any

from benchmarks import files

BY_CHANCE, FEWEST = 1e-4, 5


@dataclass
class Agreement:
    pairs: int = 0
    outside: int = 0
    exact: int = 0
    #: The largest difference between the means of one value in two runs, and the name of the value.
    #: The unit is half the width of the 99 % confidence interval of the difference.
    furthest: tuple[float, str] = (0.0, "")
    differing: list[str] = field(default_factory=list)
    turned: list[str] = field(default_factory=list)

    @property
    def allowed(self) -> int:
        """How many may lie outside."""
        from scipy.stats import binom

        return int(binom.ppf(1 - BY_CHANCE, self.pairs, 0.01))

    @property
    def limit(self) -> float:
        """How many intervals one of the pairs may be off."""
        from scipy.special import stdtrit

        far = stdtrit(2 * (FEWEST - 1), 1 - BY_CHANCE / (2 * max(self.pairs, 1)))
        return float(far / stdtrit(FEWEST - 1, 0.995))

    @property
    def good(self) -> bool:
        near = self.furthest[0] <= self.limit
        return not self.differing and self.outside <= self.allowed and near

    def add(self, where: str, mine: Any, yours: Any) -> None:
        """Compare one value of both runs; times are not compared."""
        (a, half), (b, other) = mine, yours
        if half is None or other is None:
            return
        if half == 0 and other == 0:
            self.exact += 1
            if not isclose(a, b, rel_tol=1e-9, abs_tol=1e-12):
                self.differing.append(f"{where}: {a} and {b}")
            return
        self.pairs += 1
        off = abs(a - b) / hypot(half, other)
        self.outside += off > 1
        self.furthest = max(self.furthest, (off, where))

    def lines(self) -> Iterator[str]:
        yield f"{self.exact} exact values, {len(self.differing)} of them differ"
        yield from (f"  differs: {name}" for name in self.differing[:20])
        yield (
            f"{self.pairs} estimates, {self.outside} outside the 99 % interval of their "
            f"difference (at most {self.allowed} may be)"
        )
        yield (
            f"furthest: {self.furthest[0]:.2f} such intervals (at most {self.limit:.2f}), "
            f"{self.furthest[1]}"
        )
        yield from (f"verdict turned: {text}" for text in self.turned)
        yield "the two runs agree" if self.good else "THE TWO RUNS DO NOT AGREE"


def compare(one: Path, other: Path) -> Agreement:
    """Of the experiments that both folders hold."""
    first, second = ({r["experiment"]: r for r in files.results(f)} for f in (one, other))
    common = sorted(first.keys() & second.keys())
    if not common:
        raise ValueError(f"{one} and {other} have no experiment in common")
    agreement = Agreement()
    for name in common:
        if any(first[name][size] != second[name][size] for size in ("quick", "more")):
            raise ValueError(f"{name}: the two runs have different numbers of repetitions")
        theirs = dict(values(second[name]))
        for where, value in values(first[name]):
            if where not in theirs:
                agreement.differing.append(f"{where} is in one run only")
            else:
                agreement.add(where, value, theirs[where])
        for mine, yours in zip(first[name]["claims"], second[name]["claims"], strict=True):
            if mine["verdict"] != yours["verdict"]:
                text = f"{name}: {mine['says']}: {mine['verdict']} / {yours['verdict']}"
                agreement.turned.append(text)
    return agreement


def values(result: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every value of a result with the name of its place."""
    name = result["experiment"]
    for plot in result["plots"]:
        for line, points in plot["lines"].items():
            for at, value in zip(plot["at"], points, strict=True):
                yield f"{name}: {plot['title']}: {plot['up']}: {line} at {at:g}", value
    for table in result["tables"]:
        for number, row in enumerate(table["rows"]):
            for column, cell in zip(table["columns"], row, strict=True):
                if isinstance(cell, list | float):
                    value = cell if isinstance(cell, list) else [cell, 0.0]
                    yield f"{name}: {table['title']}: row {number}, {column}", value
