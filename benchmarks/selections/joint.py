"""Recall of the nodes of highest degree against ε: what several candidates cost together.

Product: one draw after another, by permute-and-flip or the exponential mechanism, at ε/2k for a
unit of score. Beside it the one-shot Laplace mechanism and the joint exponential mechanism of the
literature, then the service's one-shot draws of one-way scores, sets and noisy vectors, all on the
same scores. The packing bound of ``docs/dev/theory/joint.md`` says how far any mechanism is from
the least possible.
"""

from collections.abc import Callable, Sequence
from math import log

import numpy as np

from accounting.privacy_loss import NANO, PrivacyLoss
from benchmarks.bench import Bar, Bench, Setting, edges_of
from benchmarks.result import Cell, Result, exact, mean
from benchmarks.selections.cases import Case, case_of, objective_of
from benchmarks.selections.joint_sequence import Sequences
from benchmarks.simulation import randomness
from mechanisms.model.executor import Inline
from mechanisms.model.joint_influence import JointInfluence, Together
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.order import largest_in_public_order
from mechanisms.noise.rate import Rate
from mechanisms.selection import LAPLACE, SELECTORS, SUBSET

GRAPHS = ("github", "enron")
SIZES = (5, 20)
EPSILONS = [0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
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
    runs, epsilons = setting.times(20), setting.fewer(EPSILONS)
    lines = {
        name: [
            mean([np.mean(degrees[draw(_loss(epsilon))] >= least) for _ in range(runs)])
            for epsilon in epsilons
        ]
        for name, draw in mechanisms(case, degrees, k).items()
    }
    most = [most_recall(degrees, k, epsilon) for epsilon in epsilons]
    bound, high = packing(degrees, k), 1 - 1 / (4 * k)
    title = f"{case.name}, top {k} by degree"
    result.plot(title, "recall", epsilons, {**lines, "packing bound": exact(most)})
    result.measure(f"{title}: packing bound of recall {high:g}", bound, "ε")
    rows: list[list[Cell]] = []
    for name, line in lines.items():
        need = crossing(epsilons, [value for value, _ in line], high)
        if need is not None:
            result.measure(f"{title}: {name} / packing bound", need / bound, "×")
        rows.append([name, *(("not reached", "") if need is None else (need, need / bound))])
    result.table(f"{title}: recall {high:g}", ["mechanism", "ε", "times the bound"], rows)


def mechanisms(case: Case, degrees: Integers, k: int) -> dict[str, Draw]:
    """By name: how the k are drawn at a loss."""
    source, scores = randomness(), case.scores(DEGREE, Sensitivity.GLOBAL, k)
    together: JointInfluence = Together(degrees.size, 1 << BITS, moving=2)
    whole: JointInfluence = Together(degrees.size, 1, moving=2)
    flip, exponential, inline = SELECTORS["permute_and_flip"], SELECTORS["exponential"], Inline()
    sequences = Sequences.of(degrees, k)
    generator = np.random.default_rng(int(source.stream().words(1)[0]))

    def one_shot_laplace(loss: PrivacyLoss) -> Integers:
        # If some scores may rise while others fall, one-shot noise of scale 2k/ε is needed (Qiao,
        # Su, Zhang 2021).
        rate = Rate.of_counts(loss.epsilon_nano, 2 * k)
        return largest_in_public_order(discrete_laplace(degrees, rate, source, inline), k)

    return {
        "product: permute-and-flip": lambda loss: flip.top(
            scores, BITS, loss, k, "peeled", source, inline
        ),
        "product: exponential": lambda loss: exponential.top(
            scores, BITS, loss, k, "peeled", source, inline
        ),
        "one-shot Laplace": one_shot_laplace,
        "joint exponential": lambda loss: sequences.draw(float(loss.epsilon()), generator),
        "one shot, one way": lambda loss: flip.top(
            scores, BITS, loss, k, "one_shot", source, inline, one_way=True
        ),
        "subset": lambda loss: SUBSET.top(scores, together, loss, k, source),
        "laplace": lambda loss: LAPLACE.top(degrees, whole, loss, k, source, inline).indices,
    }


def crossing(epsilons: Sequence[float], recalls: Sequence[float], high: float) -> float | None:
    """The ε from which on recall is ``high``, on straight lines over log ε; None if never."""
    below = [place for place, value in enumerate(recalls) if value < high]
    last = below[-1] if below else -1
    if last + 1 == len(recalls):
        return None
    if last < 0:
        return epsilons[0]
    low, above = recalls[last], recalls[last + 1]
    ratio: float = epsilons[last + 1] / epsilons[last]
    return float(epsilons[last] * ratio ** ((high - low) / (above - low)))


def packing(degrees: Integers, k: int) -> float:
    """The least ε of an expected recall of 1 − 1/4k on every graph within h edges, best h."""
    outsiders, distances = _outsiders(degrees, k)
    return float(max(log(3 * m) / h for m, h in zip(outsiders, distances, strict=True)))


def most_recall(degrees: Integers, k: int, epsilon: float) -> float:
    """The most recall that some mechanism may have on every graph within h edges, at this ε.

    Let the recall be 1 − b. Then m·e^(−εh)·(1 − kb) ≤ kb, so kb ≥ m/(m + e^(εh)).
    """
    outsiders, distances = _outsiders(degrees, k)
    share = 1 / (1 + np.exp(np.minimum(epsilon * distances, 700.0)) / outsiders)
    return float(1 - share.max() / k)


def _outsiders(degrees: Integers, k: int) -> tuple[Integers, Integers]:
    """Numbers m of outsiders that h edges each to nodes of low degree lift into the strict top.

    An outsider of d − h + 1 edges is lifted by h, where d is the k-th largest degree.
    """
    least = int(np.partition(degrees, -k)[-k])
    outside = np.sort(degrees[degrees < least])[::-1]
    distances = least + 1 - outside
    return np.searchsorted(distances, distances, side="right"), distances


def _loss(epsilon: float) -> PrivacyLoss:
    return PrivacyLoss(round(epsilon * NANO))


RIVALS = ("product", "one-shot Laplace", "joint exponential (Gillenwater et al. 2022)",
          "the packing bound")  # fmt: skip
BENCHES = (
    Bench("joint", "What do several candidates cost together, and what is the least possible?",
          run, 200.0, RIVALS,
          tuple(Bar(f"*: {ours} / packing bound", most=8.0) for ours in ("subset", "laplace")),
          edges_of(*GRAPHS)),
)  # fmt: skip
