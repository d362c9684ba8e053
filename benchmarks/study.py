"""One measure of private selections on every graph, by sensitivity and ε: table, verdicts, plot."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.graphs import data_option
from benchmarks.selections import (
    BOUNDS,
    Case,
    Floats,
    Verdicts,
    cases,
    plot,
    print_header,
    print_line,
)
from mechanisms.model.sensitivity import Sensitivity


@dataclass(frozen=True)
class Study:
    """``measured`` gives a value a repetition, shape (times,), at each ε; ``hold`` is told those of
    ``local`` and of ``global``."""

    #: Names the files of results, and ``measure`` the values in them.
    name: str
    measure: str
    #: What the values are of, for readers.
    title: str
    epsilons: Sequence[float]
    sensitivities: Sequence[Sensitivity]
    measured: Callable[[Case, Sensitivity, int], list[Floats]]
    hold: Callable[[Case, list[Floats], list[Floats], Verdicts], None]
    times: int
    places: int = 2

    def run(self, about: str, results: Path, arguments: list[str] | None) -> int:
        """All graphs asked for; 1 when an expectation fails."""
        parser = ArgumentParser(description=about)
        data_option(parser)
        parser.add_argument("--graphs", nargs="*", default=list(BOUNDS), choices=list(BOUNDS))
        parser.add_argument("--times", type=int, default=self.times, help="repetitions at every ε")
        options = parser.parse_args(arguments)
        results.mkdir(exist_ok=True)
        verdicts, means = Verdicts(), {}
        for case in cases(options.data, options.graphs):
            print_header(f"{case.name}, max_degree {case.bound}: {self.title}", self.epsilons)
            found, means[case.name] = {}, {}
            for sensitivity in self.sensitivities:
                found[sensitivity] = self.measured(case, sensitivity, options.times)
                line = [float(values.mean()) for values in found[sensitivity]]
                print_line(sensitivity, line, self.places)
                means[case.name][str(sensitivity)] = line
            self.hold(case, found[Sensitivity.LOCAL], found[Sensitivity.GLOBAL], verdicts)
        written = {"epsilons": self.epsilons, "times": options.times, self.measure: means}
        (results / f"{self.name}.json").write_text(json.dumps(written, indent=1) + "\n")
        plot([means], self.epsilons, results / f"{self.name}.png")
        return 0 if verdicts.ok else 1
