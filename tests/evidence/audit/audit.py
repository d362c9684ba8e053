"""A black-box audit: what ε do answers of the running mechanism betray, at the least?

Two neighbouring datasets are made records, utilities, scores and answers by the service's own code.
The first half of the answers chooses, of all sets of answers, the one whose probabilities look
furthest apart; the second half bounds them by Clopper and Pearson. So
    ε ≥ ln(lower bound of P(x ∈ set) / upper bound of P(y ∈ set))
but with the probability of a false alarm, whatever the mechanism. A mechanism is flagged when that
exceeds the ε it claims. Each one is audited as it is, and with noise a quarter too small (scale
× 3/4): the former may be flagged in 1 of 20 runs, the latter must be in 19 of 20.

An audit can only accuse. ``tests/evidence/certification`` proves that the loss is never above ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from typing import Literal

import numpy as np

from accounting.privacy_loss import NANO, PrivacyLoss
from benchmarks.data.graphs import graph_dataset, graph_records
from benchmarks.selections.cases import objective_of
from benchmarks.selections.inclusion import Floats
from mechanisms.model.candidates import AllNodes, Candidates
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.executor import Inline
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records, TableRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.model.table_candidates import ValuesOf
from mechanisms.noise.rate import Rate, score_bits
from mechanisms.objectives import Objective
from mechanisms.selection import SELECTORS
from mechanisms.selection.dampening import scores
from mechanisms.selection.top_k import plan, select_top
from tests.support.selections import noisy_max_winners, race_winners

#: The privacy loss that every audited mechanism claims: ε = 1.
CLAIMED = PrivacyLoss.parse("1")
EPSILON = CLAIMED.epsilon_nano / NANO
#: In one run an honest mechanism is flagged with at most this probability.
FALSE_ALARM = 1e-3
#: With up to this many possible answers the audit compares all sets of answers, with more only
#: single answers.
MOST_ANSWERS = 8
#: For each selector, how many of six rows have the rarer of two values. The number is chosen so
#: that neighbours show most of the loss: permute-and-flip loses the whole ε when a tie becomes a
#: lead of 2, the exponential mechanism loses nearly ε only if the rarer value is unlikely.
RAREST = {"permute_and_flip": 3, "exponential": 1}

#: The scale of the noise: as in production, or three quarters of it, which the audit must flag.
Scale = Literal["full", "three quarters"]
#: Draws answers as numbers from 0. The arguments are the dataset (0 for x, 1 for y), the scale of
#: the noise, the number of answers, and the randomness.
Sample = Callable[[int, Scale, int, Randomness], Integers]


@dataclass(frozen=True)
class Audited:
    """A mechanism that runs: its answers on two neighbouring datasets."""

    name: str
    answers: int
    sample: Sample

    def bound(self, scale: Scale, draws: int, randomness: Randomness) -> float:
        x, y = (self.sample(side, scale, draws, randomness) for side in (0, 1))
        return lower_bound(x, y, self.answers)


def lower_bound(x: Integers, y: Integers, answers: int, alpha: float = FALSE_ALARM) -> float:
    """ε of at least this, but with probability ``alpha``: answers in 0 … answers − 1 on x and y."""
    family = sets_of(answers)
    halves = [
        [family @ np.bincount(part, minlength=answers) for part in np.array_split(sample, 2)]
        for sample in (x, y)
    ]
    (x_chosen, x_judged), (y_chosen, y_judged) = halves
    sizes = [len(part) for part in np.array_split(x, 2)]
    # The loss of the dataset x against its neighbour y may differ from that of y against x, so the
    # larger bound is used.
    forth = bounds(x_chosen, y_chosen, sizes[0], alpha)
    back = bounds(y_chosen, x_chosen, sizes[0], alpha)
    best = int(np.argmax(np.maximum(forth, back)))
    one, other = (x_judged, y_judged) if forth[best] >= back[best] else (y_judged, x_judged)
    judged = bounds(one[best : best + 1], other[best : best + 1], sizes[1], alpha)
    return float(judged[0])


def bounds(hits: Integers, others: Integers, draws: int, alpha: float) -> Floats:
    """ln(p/q), p ≥ and q ≤ by Clopper and Pearson, each but with probability alpha/2."""
    from scipy.stats import beta

    low = np.where(hits > 0, beta.ppf(alpha / 2, np.maximum(hits, 1), draws - hits + 1), 0)
    high = np.where(
        others < draws, beta.ppf(1 - alpha / 2, others + 1, np.maximum(draws - others, 1)), 1
    )
    with np.errstate(divide="ignore"):
        ratio: Floats = np.log(low) - np.log(high)
    return ratio


def sets_of(answers: int) -> Integers:
    """The public family: one row a set of answers, 1 where it has the answer."""
    most = answers if answers <= MOST_ANSWERS else 2
    sizes = (combinations(range(answers), size) for size in range(1, most))
    chosen = list(chain.from_iterable(sizes))
    family = np.zeros((len(chosen), answers), dtype=np.int64)
    for row, members in zip(family, chosen, strict=True):
        row[list(members)] = 1
    return family


@dataclass(frozen=True)
class Neighbours:
    """One change apart, and what is selected from them."""

    dataset: Dataset
    candidates: Candidates
    objective: Objective
    sensitivity: Sensitivity
    records: tuple[Records, Records]

    @property
    def count(self) -> int:
        return self.candidates.count(self.dataset)

    def scores(self, side: int) -> Integers:
        public = plan(self.dataset, self.candidates, self.objective, self.sensitivity, 1)
        measured = self.objective.measure(
            self.records[side], self.dataset, self.candidates, self.sensitivity, public.grid
        )
        direction = self.objective.direction
        return scores(measured, public.grid, self.sensitivity, public.score_bits, direction)


def replaced_row(few: int) -> Neighbours:
    """One of six rows goes from a value that ``few`` of them have to the other one."""
    attribute = CategoricalAttribute("sex", ("f", "m"))
    dataset = Dataset("table", NeighbouringRelation.REPLACE, TableDomain((attribute,), rows=6))
    codes = [np.repeat([0, 1], [k, 6 - k]).astype(np.uint8) for k in (few, few - 1)]
    x, y = (TableRecords({"sex": column}, {}) for column in codes)
    objective = objective_of("single", {"count": None})
    return Neighbours(dataset, ValuesOf("sex"), objective, Sensitivity.GLOBAL, (x, y))


def flipped_edge(objective: Objective, sensitivity: Sensitivity) -> Neighbours:
    """Six nodes; y lacks one edge of a triangle on a path."""
    sources, targets = np.array([[0, 0, 1, 2, 3, 4], [1, 2, 2, 3, 4, 5]], np.int32)
    x, y = (graph_records((sources[drop:], targets[drop:], 6)) for drop in (0, 1))
    return Neighbours(graph_dataset("graph", 6), AllNodes(), objective, sensitivity, (x, y))


def in_rows(neighbours: Neighbours, selector: str) -> Sample:
    """Answers of one selector by the kernels of production, many at once."""

    def sample(side: int, scale: Scale, draws: int, randomness: Randomness) -> Integers:
        values = neighbours.scores(side)
        rate = Rate.of(CLAIMED.epsilon_nano, score_bits(1))
        if scale == "three quarters":
            rate = Rate(4 * rate.a, 3 * rate.b)
        if selector == "exponential":
            return race_winners(values, rate, draws, randomness)
        return noisy_max_winners(values, rate, draws, randomness)

    return sample


def by_select_top(neighbours: Neighbours, selector: str, k: int) -> Sample:
    """Ordered answers of whole queries, one after another; slow."""

    def sample(side: int, scale: Scale, draws: int, randomness: Randomness) -> Integers:
        nano = CLAIMED.epsilon_nano
        loss = CLAIMED if scale == "full" else PrivacyLoss(nano * 4 // 3)
        answer = partial(
            select_top,
            neighbours.records[side],
            neighbours.dataset,
            neighbours.candidates,
            neighbours.objective,
            neighbours.sensitivity,
            SELECTORS[selector],
            k,
            "peeled",
            loss,
            randomness,
            Inline(),
        )
        drawn = np.array([answer() for _ in range(draws)], dtype=np.int64)
        return drawn @ neighbours.count ** np.arange(k)

    return sample


def mechanisms() -> dict[str, Audited]:
    """By selector, on neighbours where its loss (nearly) reaches ε: too small noise must show."""
    return {
        name: Audited(f"{name}, a replaced row", 2, in_rows(replaced_row(few), name))
        for name, few in RAREST.items()
    }


def whole_queries() -> list[Audited]:
    """Whole queries as they are; on most pairs of datasets they lose far less than ε."""
    both = {"degree": None, "egocentric_density": None}
    local, whole = Sensitivity.LOCAL, Sensitivity.GLOBAL
    pareto = flipped_edge(objective_of("pareto", both), local)
    degree = flipped_edge(objective_of("single", {"degree": None}), whole)
    return [
        *(
            Audited(f"select_top, {name}, a replaced row, both values",
                    4, by_select_top(replaced_row(few), name, 2))
            for name, few in RAREST.items()
        ),
        Audited("select_top, Pareto, local, an edge", 6,
                by_select_top(pareto, "permute_and_flip", 1)),
        Audited("select_top, degree, two nodes, an edge", 36,
                by_select_top(degree, "permute_and_flip", 2)),
    ]  # fmt: skip
