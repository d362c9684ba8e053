"""Selection of the best k candidates: grid, measurement, scores, draws.

``plan`` needs no records: a price or a quote calls it alone. ``select_top`` calls it again before
it reads anything private, so both refuse the same queries.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.candidates import Candidates
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.rate import score_bits
from mechanisms.objectives import Objective, Pareto
from mechanisms.selection import LAPLACE, SUBSET, Draws, Selector, SelectorName
from mechanisms.selection.checks import a_release_each
from mechanisms.selection.dampening import check_exact, scores
from mechanisms.selection.noisy_vector import NoisyScores
from mechanisms.utilities.utility import ClippedObjective, ClippedScores, Grid

#: The largest sum, over all candidates, of the grid steps by which one change of the records moves
#: their scores. Up to this number, noise is drawn in exact arithmetic. Beyond it, scores get a
#: coarser grid.
LARGEST_TOTAL = 1 << 31


@dataclass(frozen=True)
class Plan:
    """Public: the grids of utilities and scores, and the number of candidates.

    One step of a score is 2^−score_bits of its sensitivity. Under the global sensitivity, one unit
    of the utility is 2^grid.bits / grid.cap units of score.
    """

    grid: Grid
    score_bits: int
    count: int
    #: Bounds on how far one change of the records moves the scores of all candidates together: the
    #: sum of all moves, the sum of their squares, and the spread. The spread is the most that the k
    #: largest moves exceed the k smallest, in sum. The unit is a grid step of scores.
    influence: JointInfluence

    def among(self, listed: Integers | None) -> "Plan":
        """The plan of a selection out of the candidates ``listed``; None stands for all."""
        return self if listed is None else self.of(listed.size)

    def of(self, count: int) -> "Plan":
        """The plan of a selection out of ``count`` of the candidates."""
        return replace(self, count=count, influence=replace(self.influence, count=count))


def plan(
    dataset: Dataset,
    candidates: Candidates,
    objective: Objective,
    sensitivity: Sensitivity,
    k: int,
    selector: SelectorName = "permute_and_flip",
    clip: int = 0,
) -> Plan:
    """The plan of a selection of ``k`` candidates, from public facts alone.

    With ``clip``, lower scores count as this many units; the objective must know their influence.
    Raises: UnsupportedQuery when the dataset's relation or kind of candidates is not the
        objective's, when there are fewer than k candidates, or when no grid keeps utilities,
        sums and scores inside 64 bits.
    """
    if dataset.neighbouring not in objective.relations:
        raise UnsupportedQuery(
            f"the objective is private under another relation than {dataset.neighbouring}",
            supported={"neighbouring": sorted(objective.relations)},
        )
    if candidates.kind != objective.candidates:
        raise UnsupportedQuery(
            f"the objective does not rank {candidates.kind}",
            supported={"candidates": objective.candidates},
        )
    count = candidates.count(dataset)
    if not 1 <= k <= count:
        raise UnsupportedQuery(
            f"k lies between 1 and the number of candidates, {count}", supported={"k": count}
        )
    grid = objective.grid(dataset, candidates, sensitivity)

    def influence(bits: int) -> JointInfluence:
        if clip:
            clipped = clipped_scores(objective, dataset, candidates, grid)
            together = None if clipped is None else clipped.influence(dataset, clip, bits)
            if together is None:
                raise ValueError("clipped scores of this objective have no known influence")
            return together
        return objective.joint_influence(dataset, candidates, sensitivity, grid, bits)

    bits = _vector_bits(grid, influence) if selector == LAPLACE.name else score_bits(k)
    check_exact(grid, bits)
    return Plan(grid, bits, count, influence(bits))


def clipped_scores(
    objective: Objective, dataset: Dataset, candidates: Candidates, grid: Grid
) -> ClippedScores | None:
    """The clipped scores of the objective, or None if it has none."""
    if not isinstance(objective, ClippedObjective):
        return None
    return objective.clipped(dataset, candidates, grid)


def _vector_bits(grid: Grid, influence: Callable[[int], JointInfluence]) -> int:
    """q for noise on every score: 0 where scores are utilities in whole units, as counts are."""
    if (grid.bits, grid.cap, grid.horizon) == (0, 1, 1):
        return 0
    bits = score_bits(1)
    while bits and influence(bits).total > LARGEST_TOTAL:
        bits -= 1
    return bits


def draw_steps(
    selector: Selector, objective: Objective, loss: PrivacyLoss, k: int, draws: Draws, rescore: bool
) -> tuple[Step, ...]:
    """The steps that spend ``loss`` on k candidates; with ``rescore`` each draw is a release.

    Raises: as ``selector.steps``. UnsupportedQuery with ``rescore`` when scores do not compare
        candidates, or when all draws come from one noisy vector.
    """
    if not rescore:
        return selector.steps(loss, k, draws)
    if not isinstance(objective, Pareto):
        raise UnsupportedQuery(
            "only scores that compare candidates change with those that are left",
            supported={"objective": "pareto"},
        )
    if draws != "peeled":
        raise UnsupportedQuery(
            "candidates that are scored anew are drawn one after another",
            supported={"draws": "peeled"},
        )
    (one,) = selector.steps(loss, 1, draws)
    steps = a_release_each(one.what, loss, k, lambda share: selector.rho_bound(share, 1))
    for step in steps:
        # Called only for its error. Each draw is a selection of its own, so the loss of each draw
        # must be in the range of exact arithmetic.
        selector.steps(step.loss, 1, draws)
    return steps


def select_top(
    records: Records,
    dataset: Dataset,
    candidates: Candidates,
    objective: Objective,
    sensitivity: Sensitivity,
    selector: Selector,
    k: int,
    draws: Draws,
    loss: PrivacyLoss,
    randomness: Randomness,
    executor: Executor,
    rescore: bool = False,
    listed: Integers | None = None,
) -> Integers:
    """Indices of k candidates in the order drawn, shape (k,).

    Args:
        records: private and prepared; they must satisfy the public domain of ``dataset``.
        selector, draws: how the k are drawn, with equal shares of ``loss`` each.
        loss: ε of all k draws together.
        randomness: ``SystemRandomness()`` when answering analysts.
        rescore: True if scores compare only the remaining candidates, anew before each draw.
        listed: the public or released indices of the candidates to draw from, without ``rescore``;
            None stands for all. Scores stay those among all candidates, and the result holds
            places in this list.

    Raises: as ``plan`` and ``draw_steps``, before anything private is read.
    Privacy: ε-DP under ``dataset.neighbouring``. With ``rescore`` by adaptive composition, because
        the remaining candidates follow from earlier answers. A single candidate is returned without
        reading records.
    Source: Local Dampening, PVLDB 14(4), 2021, Algorithm 1, excluding earlier picks.
    """
    public = plan(dataset, candidates, objective, sensitivity, k).among(listed)
    if public.count == 1:
        return np.zeros(1, dtype=np.int64)
    steps = draw_steps(selector, objective, loss, k, draws, rescore)
    if isinstance(objective, Pareto):
        objective = objective.on(executor)
    grid, bits = public.grid, public.score_bits
    measured = objective.measure(records, dataset, candidates, sensitivity, grid)
    if not (rescore and isinstance(objective, Pareto)):
        own = scores(measured, grid, sensitivity, bits, objective.direction)
        own, one_way = _among(own, listed), public.influence.one_way
        return selector.top(own, bits, loss, k, draws, randomness, executor, one_way=one_way)
    rest = np.arange(public.count, dtype=np.int64)
    drawn = np.empty(k, dtype=np.int64)
    shares = [step.loss for step in steps for _ in range(step.times)]
    for j, share in enumerate(shares):
        own = scores(measured, grid, sensitivity, bits, objective.direction)
        (place,) = selector.top(own, bits, share, 1, draws, randomness, executor)
        drawn[j] = rest[place]
        rest = np.delete(rest, place)
        if j + 1 < k:
            measured, grid = objective.without(measured, grid, int(place))
    return drawn


def select_set(
    context: QueryContext,
    candidates: Candidates,
    objective: Objective,
    sensitivity: Sensitivity,
    k: int,
    listed: Integers | None = None,
    clip: int = 0,
) -> Integers:
    """Indices of k candidates as one set, in ascending order, shape (k,).

    With ``listed``, as in ``select_top``, they are places in that list; ``clip`` as in ``plan``.
    Raises: as ``plan`` and ``Subset.steps``, before anything private is read.
    Privacy: ε-DP under the relation of the dataset; ``Subset`` has the law. A set of all candidates
        is returned without reading records.
    """
    whole = plan(context.dataset, candidates, objective, sensitivity, k, "subset", clip)
    public = whole.among(listed)
    if k == public.count:
        return np.arange(k, dtype=np.int64)
    own = _among(_scores(context, candidates, objective, sensitivity, public), listed)
    if clip:
        own = np.maximum(own, clip << public.score_bits)
    return SUBSET.top(own, public.influence, context.loss, k, context.randomness)


def select_noisy(
    context: QueryContext,
    candidates: Candidates,
    objective: Objective,
    sensitivity: Sensitivity,
    k: int,
    listed: Integers | None = None,
) -> NoisyScores:
    """The k largest of all scores with noise, in order, with their noisy scores in steps.

    With ``listed``, as in ``select_top``, they are the largest of that list, by places in it.
    Raises: as ``plan`` and ``NoisyVector.steps``, before anything private is read.
    Privacy: ε-DP under the relation of the dataset, for the noisy scores of all candidates.
    """
    public = plan(context.dataset, candidates, objective, sensitivity, k, "laplace").among(listed)
    own = _among(_scores(context, candidates, objective, sensitivity, public), listed)
    return LAPLACE.top(own, public.influence, context.loss, k, context.randomness, context.executor)


def _among(scores: Integers, listed: Integers | None) -> Integers:
    return scores if listed is None else scores[listed]


def _scores(
    context: QueryContext,
    candidates: Candidates,
    objective: Objective,
    sensitivity: Sensitivity,
    public: Plan,
) -> Integers:
    """The private scores of all candidates."""
    if isinstance(objective, Pareto):
        objective = objective.on(context.executor)
    measured = objective.measure(
        context.records, context.dataset, candidates, sensitivity, public.grid
    )
    return scores(measured, public.grid, sensitivity, public.score_bits, objective.direction)
