"""How far a private Pareto top 3 falls behind the true one: degree and egocentric density.

The measure is C, the share of selected nodes that some node of the true top 3 beats in both
utilities (0 is best), averaged over repetitions. Ties of the Pareto score go to the larger degree,
then the larger density, then the public order. Draws come from scores computed once.

Prints and plots C against ε for ``local`` and ``global`` on each graph. Then it holds what is
expected; an expectation fails when the 99 % interval of the repetitions (of all comparisons of the
two together) lies wholly on its wrong side, and then so does the run, with status 1.

    python -m benchmarks.pareto_measure --data DIR [--times R]
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.selections import (
    BOUNDS,
    RESULTS,
    Case,
    Floats,
    Verdicts,
    interval,
    objective_of,
    repeated_draws,
)
from benchmarks.study import Study
from mechanisms.model.sensitivity import Integers, Sensitivity

K = 3
MEMBERS = ("degree", "egocentric_density")
EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0]
#: The most that C of ``local`` may be, by ε.
MOST = {20.0: 0.06, 50.0: 0.005}
#: Where ``local`` must be the better one.
BETTER_AT = 20.0
MEASURED = (Sensitivity.LOCAL, Sensitivity.GLOBAL)


def points(case: Case) -> Integers:
    """The utilities of all nodes, shape (members, nodes), each on its own grid."""
    return np.stack([case.utilities(objective_of("single", {name: None})) for name in MEMBERS])


def true_top(case: Case, at: Integers) -> Integers:
    """The K best nodes by Pareto score, ties as above."""
    score = case.utilities(objective_of("pareto", dict.fromkeys(MEMBERS)))
    # The last key of lexsort comes first; it keeps the public order among equals.
    return np.lexsort((*-at[::-1], -score))[:K]


def measure(best: Integers, drawn: Integers) -> Floats:
    """C of each repetition: ``best`` (members, K), ``drawn`` (members, times, K)."""
    beaten = (best[:, None, None, :] > drawn[:, :, :, None]).all(axis=0).any(axis=-1)
    return beaten.mean(axis=1)


def measured(case: Case, sensitivity: Sensitivity, times: int) -> list[Floats]:
    """C of each repetition, shape (times,), at each ε."""
    at = points(case)
    best = at[:, true_top(case, at)]
    found = case.scores(objective_of("pareto", dict.fromkeys(MEMBERS)), sensitivity, K)
    return [measure(best, at[:, repeated_draws(found, K, epsilon, times)]) for epsilon in EPSILONS]


def hold(case: Case, local: list[Floats], whole: list[Floats], verdicts: Verdicts) -> None:
    for epsilon, most in MOST.items():
        values = local[EPSILONS.index(epsilon)]
        mean, margin = values.mean(), interval(values)
        verdicts.hold(
            f"{case.name}: local {mean:.4f} ± {margin:.4f} at ε = {epsilon:g} (expected ≤ {most})",
            bool(mean - margin <= most),
        )
    # One interval for all comparisons together, or some would fail by chance alone.
    confidence = 1 - 0.01 / (len(EPSILONS) * len(BOUNDS))
    worse = {}
    for epsilon, ours, theirs in zip(EPSILONS, local, whole, strict=True):
        difference = ours.mean() - theirs.mean()
        margin = np.hypot(interval(ours, confidence), interval(theirs, confidence))
        if difference > margin:
            worse[epsilon] = float(difference)
        if epsilon == BETTER_AT:
            margin = np.hypot(interval(ours), interval(theirs))
            verdicts.hold(
                f"{case.name}: local − global {difference:+.4f} ± {margin:.4f} at "
                f"ε = {epsilon:g} (expected < 0)",
                bool(difference - margin < 0),
            )
    verdicts.hold(f"{case.name}: local is nowhere worse than global; worse at {worse}", not worse)


def main(arguments: list[str] | None = None) -> int:
    study = Study(
        name="pareto_measure",
        measure="measure",
        title=f"C of the Pareto top {K}",
        epsilons=EPSILONS,
        sensitivities=MEASURED,
        measured=measured,
        hold=hold,
        times=200,
        places=3,
    )
    return study.run(__doc__.partition("\n")[0], RESULTS, arguments)


if __name__ == "__main__":
    sys.exit(main())
