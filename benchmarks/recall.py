"""Recall of the true top k by egocentric betweenness: what each sensitivity buys.

Prints and plots, for every graph and degree bound, recall@k against ε for the four sensitivities,
and how many times more ε ``global`` needs than ``shifted`` for a recall of 0.9. Then it holds the
expected recalls (k = 5, 100 repetitions) against 99 % intervals; status 1 when one fails.

    python -m benchmarks.recall --data DIR [--quick]
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace

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
from mechanisms.model.sensitivity import Integers, Sensitivity

UTILITY = "egocentric_betweenness"
COUNTS = (1, 5, 10, 20)
EPSILONS = [float(f"{base}e{power}") for power in range(-3, 4) for base in (1, 3)] + [1e4]
#: (graph, ε, least recall@5 of ``shifted``); ``global`` stays below 0.05 at each.
EXPECTED = [("github", 0.05, 0.85), ("github", 0.3, 0.98), ("enron", 0.75, 0.95),
            ("dblp", 2.0, 0.75)]  # fmt: skip
GLOBAL_BELOW = 0.05


def true_order(case: Case) -> Integers:
    """All nodes by falling betweenness, ties in the public order."""
    return np.argsort(-case.records.columns[UTILITY], kind="stable")


def recalls(case: Case, sensitivity: Sensitivity, k: int, epsilon: float, times: int) -> Floats:
    """The recall of each repetition, shape (times,)."""
    found = case.scores(objective_of("single", {UTILITY: None}), sensitivity, k)
    drawn = repeated_draws(found, k, epsilon, times)
    return np.isin(drawn, true_order(case)[:k]).mean(axis=1)


def table(case: Case, options: Namespace) -> dict[str, dict[str, list[float]]]:
    """Mean recall by k and sensitivity, one value an ε."""
    rows: dict[str, dict[str, list[float]]] = {}
    for k in COUNTS:
        print_header(f"{case.name}, max_degree {case.bound}, k = {k}: recall", EPSILONS)
        rows[str(k)] = {}
        for sensitivity in Sensitivity:
            line = [
                float(recalls(case, sensitivity, k, epsilon, options.times).mean())
                for epsilon in EPSILONS
            ]
            rows[str(k)][sensitivity] = line
            print_line(sensitivity, line)
        needed = {name: epsilon_at(line, 0.9) for name, line in rows[str(k)].items()}
        shifted, whole = needed["shifted"], needed["global"]
        if shifted and whole:
            print(f"ε at recall 0.9, global / shifted: {whole / shifted:.3g}")
        elif shifted:
            print(f"ε at recall 0.9, global / shifted: above {EPSILONS[-1] / shifted:.3g}")
    return rows


def epsilon_at(line: list[float], recall: float) -> float | None:
    """Where the line first reaches ``recall``, interpolated in log ε; None if it never does."""
    for i, value in enumerate(line):
        if value >= recall:
            if i == 0 or value == line[i - 1]:
                return EPSILONS[i]
            share = (recall - line[i - 1]) / (value - line[i - 1])
            return float(EPSILONS[i - 1] * (EPSILONS[i] / EPSILONS[i - 1]) ** share)
    return None


def hold(case: Case, times: int, verdicts: Verdicts) -> None:
    """Hold the expected recalls; one that is missed beyond a 99 % interval fails."""
    for name, epsilon, least in EXPECTED:
        if name != case.name:
            continue
        shifted = recalls(case, Sensitivity.SHIFTED, 5, epsilon, times)
        whole = recalls(case, Sensitivity.GLOBAL, 5, epsilon, times)
        margin = interval(shifted)
        good = bool(shifted.mean() + margin >= least and whole.mean() < GLOBAL_BELOW)
        verdicts.hold(
            f"{name}, max_degree {case.bound}, ε = {epsilon:g}: shifted {shifted.mean():.3f} "
            f"± {margin:.3f} (expected ≥ {least}), global {whole.mean():.3f} (< {GLOBAL_BELOW})",
            good,
        )


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    data_option(parser)
    parser.add_argument("--graphs", nargs="*", default=list(BOUNDS), choices=list(BOUNDS))
    parser.add_argument("--times", type=int, default=30, help="repetitions of the table")
    parser.add_argument("--quick", action="store_true", help="only the expected recalls")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    verdicts, results = Verdicts(), {}
    for case in cases(options.data, options.graphs, unbounded=True):
        hold(case, 100, verdicts)
        if not options.quick:
            results[f"{case.name}, max_degree {case.bound}"] = table(case, options)
    if results:
        (RESULTS / "recall.json").write_text(json.dumps({"epsilons": EPSILONS, **results}))
        panels = [
            {f"{name}, k = {k}": lines for k, lines in by_k.items()}
            for name, by_k in results.items()
        ]
        plot(panels, EPSILONS, RESULTS / "recall.png")
    return 0 if verdicts.ok else 1


if __name__ == "__main__":
    sys.exit(main())
