"""Recall of the nodes of highest degree against ε: what several candidates cost together.

Product: one draw after another at ε/2k a unit of score. Beside it one-shot draws of one-way scores,
the joint exponential mechanism (Gillenwater et al. 2022) and the noisy vector, all on the same
scores. The packing bound of ``docs/dev/theory/joint.md`` says how far any mechanism is from them.
"""

from collections.abc import Callable
from math import log

import numpy as np

from accounting.privacy_loss import NANO, PrivacyLoss
from benchmarks.bench import Bench, Setting, edges_of
from benchmarks.result import Result, mean
from benchmarks.selections.cases import Case, case_of, objective_of
from benchmarks.simulation import randomness
from mechanisms.model.executor import Inline
from mechanisms.model.joint_influence import JointInfluence, Together
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.selection import LAPLACE, SELECTORS, SUBSET

GRAPHS = ("github", "enron")
SIZES = (5, 20)
EPSILONS = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
DEGREE = objective_of("single", {"degree": None})
BITS = 20
Draw = Callable[[PrivacyLoss], Integers]


def run(result: Result, setting: Setting) -> None:
    for name in GRAPHS:
        case = case_of(setting.data, name)
        for k in SIZES:
            compared(result, setting, case, k)


def compared(result: Result, setting: Setting, case: Case, k: int) -> None:
    degrees = case.utilities(DEGREE)
    least = int(np.partition(degrees, -k)[-k])
    ways = mechanisms(case, degrees, k)
    runs, epsilons = setting.times(20), setting.fewer(EPSILONS)
    lines = {
        name: [
            mean([np.mean(degrees[draw(_loss(epsilon))] >= least) for _ in range(runs)])
            for epsilon in epsilons
        ]
        for name, draw in ways.items()
    }
    result.plot(f"{case.name}, top {k} by degree", "recall", epsilons, lines)
    bound = packing(degrees, k)
    result.measure(f"{case.name}, k = {k}: packing bound", bound, "ε")
    for name, line in lines.items():
        reached = [e for e, (r, _) in zip(epsilons, line, strict=True) if r >= 1 - 1 / (4 * k)]
        if reached:
            result.measure(f"{case.name}, k = {k}: {name} / bound", reached[0] / bound, "×")


def mechanisms(case: Case, degrees: Integers, k: int) -> dict[str, Draw]:
    """By name: how the k are drawn at a loss."""
    source, scores = randomness(), case.scores(DEGREE, Sensitivity.GLOBAL, k)
    together: JointInfluence = Together(degrees.size, 1 << BITS, moving=2)
    whole: JointInfluence = Together(degrees.size, 1, moving=2)
    flip, inline = SELECTORS["permute_and_flip"], Inline()
    return {
        "product": lambda loss: flip.top(scores, BITS, loss, k, "peeled", source, inline),
        "one shot, one way": lambda loss: flip.top(
            scores, BITS, loss, k, "one_shot", source, inline, one_way=True
        ),
        "subset": lambda loss: SUBSET.top(scores, together, loss, k, source),
        "laplace": lambda loss: LAPLACE.top(degrees, whole, loss, k, source, inline).indices,
    }


def packing(degrees: Integers, k: int) -> float:
    """The least ε of an expected recall of 1 − 1/4k on every graph within h edges, best h.

    h edges to nodes of low degree lift an outsider of at least d − h + 1 edges into the strict top,
    where d is the k-th largest degree: ε ≥ ln(3m)/h for m of them.
    """
    least = int(np.partition(degrees, -k)[-k])
    outside = np.sort(degrees[degrees < least])[::-1]
    distances = least + 1 - outside
    counts = np.searchsorted(distances, distances, side="right")
    return float(max(log(3 * m) / h for m, h in zip(counts, distances, strict=True)))


def _loss(epsilon: float) -> PrivacyLoss:
    return PrivacyLoss(round(epsilon * NANO))


BENCHES = (
    Bench("joint", "What do several candidates cost together, and what is the least possible?",
          run, 60.0, ("product", "one shot, one way"), (), edges_of(*GRAPHS)),
)  # fmt: skip
