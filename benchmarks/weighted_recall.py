"""Recall of the top 5 by degree + 100 · egocentric density: what each sensitivity buys.

Prints and plots recall against ε for the four sensitivities on each graph. Then it holds what is
expected of ``local`` and ``global``; an expectation fails when the 99 % interval of the repetitions
lies wholly on its wrong side, and then so does the run, with status 1.

One density is moved by up to 1 anywhere in the universe, by 2/d at a node of degree d: the weight
of 100 makes ``global`` 101 times as coarse for everyone, ``local`` only for nodes of few edges.

    python -m benchmarks.weighted_recall --data DIR [--times R]
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.selections import (
    RESULTS,
    Case,
    Floats,
    Verdicts,
    interval,
    objective_of,
    repeated_draws,
)
from benchmarks.study import Study
from mechanisms.model.sensitivity import Sensitivity

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
    study = Study(
        name="weighted_recall",
        measure="recall",
        title=f"recall of the top {K}",
        epsilons=EPSILONS,
        sensitivities=tuple(Sensitivity),
        measured=recalls,
        hold=hold,
        times=100,
    )
    return study.run(__doc__.partition("\n")[0], RESULTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
