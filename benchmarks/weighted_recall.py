"""Recall of the top 5 by degree + 100 · egocentric density: what each sensitivity buys.

Prints and plots recall against ε for the four sensitivities on each graph. Then it holds what is
expected of ``local`` and ``global``; an expectation fails when the 99 % interval of the repetitions
lies wholly on its wrong side, and then so does the run, with status 1.

One density is moved by up to 1 anywhere in the universe, by 2/d at a node of degree d: the weight
of 100 makes ``global`` 101 times as coarse for everyone, ``local`` only for nodes of few edges.

    python -m benchmarks.weighted_recall --data DIR [--times R]
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser

import numpy as np

from benchmarks.graphs import data_option
from benchmarks.selections import (
    BOUNDS,
    RESULTS,
    Case,
    Floats,
    Verdicts,
    cases,
    interval,
    objective_of,
    plot,
    print_header,
    print_line,
    repeated_draws,
)
from mechanisms.sensitivity import Sensitivity

K = 5
WEIGHTS = {"degree": "1", "egocentric_density": "100"}
EPSILONS = [float(f"{base}e{power}") for power in range(-2, 2) for base in (1, 2, 5)] + [100.0]
#: ``local`` reaches this recall by the ε of each graph, ``global`` not even with ten times it.
RECALL, TIMES_MORE = 0.95, 10
REACHED_BY = {"github": 1.0, "enron": 1.0, "dblp": 5.0}


def recalls(case: Case, sensitivity: Sensitivity, times: int) -> list[Floats]:
    """The recall of each repetition, shape (times,), at each ε."""
    objective = objective_of("weighted_sum", WEIGHTS)
    # Ties in the true top are broken by the public order of nodes.
    best = np.argsort(-case.utilities(objective), kind="stable")[:K]
    found = case.scores(objective, sensitivity, K)
    return [
        np.isin(repeated_draws(found, K, epsilon, times), best).mean(axis=1) for epsilon in EPSILONS
    ]


def hold(case: Case, local: list[Floats], whole: list[Floats], verdicts: Verdicts) -> None:
    limit = EPSILONS.index(REACHED_BY[case.name])
    # The first ε at which the recall is reached; where none is, the verdict is on the limit.
    at = next((i for i in range(limit) if local[i].mean() >= RECALL), limit)
    mean, margin = local[at].mean(), interval(local[at])
    verdicts.hold(
        f"{case.name}: local {mean:.3f} ± {margin:.3f} at ε = {EPSILONS[at]:g} "
        f"(expected ≥ {RECALL} by ε = {REACHED_BY[case.name]:g})",
        bool(mean + margin >= RECALL),
    )
    more = EPSILONS.index(EPSILONS[at] * TIMES_MORE)
    mean, margin = whole[more].mean(), interval(whole[more])
    verdicts.hold(
        f"{case.name}: global {mean:.3f} ± {margin:.3f} at ε = {EPSILONS[more]:g}, "
        f"{TIMES_MORE} times as much (expected < {RECALL})",
        bool(mean - margin < RECALL),
    )


def main(arguments: list[str] | None = None) -> int:
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    data_option(parser)
    parser.add_argument("--graphs", nargs="*", default=list(BOUNDS), choices=list(BOUNDS))
    parser.add_argument("--times", type=int, default=100, help="repetitions at every ε")
    options = parser.parse_args(arguments)
    RESULTS.mkdir(exist_ok=True)
    verdicts, results = Verdicts(), {}
    for case in cases(options.data, options.graphs):
        print_header(f"{case.name}, max_degree {case.bound}: recall of the top {K}", EPSILONS)
        found = {}
        for sensitivity in Sensitivity:
            found[sensitivity] = recalls(case, sensitivity, options.times)
            print_line(sensitivity, [float(values.mean()) for values in found[sensitivity]])
        hold(case, found[Sensitivity.LOCAL], found[Sensitivity.GLOBAL], verdicts)
        results[case.name] = {
            str(name): [float(values.mean()) for values in line] for name, line in found.items()
        }
    written = {"epsilons": EPSILONS, "times": options.times, "recall": results}
    (RESULTS / "weighted_recall.json").write_text(json.dumps(written, indent=1) + "\n")
    plot([results], EPSILONS, RESULTS / "weighted_recall.png")
    return 0 if verdicts.ok else 1


if __name__ == "__main__":
    sys.exit(main())
