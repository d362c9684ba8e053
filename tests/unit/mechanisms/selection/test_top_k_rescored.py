"""Top-k of an objective that compares candidates: scored once, or anew on those that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.randomness import Randomness
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.objectives import Objective, Pareto, Term
from mechanisms.selection import SELECTORS, Draws
from mechanisms.selection.dampening import scores
from mechanisms.selection.permute_and_flip import PermuteAndFlip
from mechanisms.selection.top_k import draw_steps, plan, select_top
from mechanisms.utilities import UTILITIES
from tests.evidence.certification import synthetic
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.evidence.certification.objectives import pareto
from tests.evidence.certification.synthetic import Synthetic

WHEEL = graph_of(7, [(0, v) for v in range(1, 7)] + [(1, 2), (3, 4), (5, 6), (1, 3)])
NODES = pareto(UTILITIES["degree"], UTILITIES["egocentric_density"])
LOSS = PrivacyLoss.parse("2")


def select(
    objective: Objective,
    records: Any,
    dataset: Dataset,
    candidates: Any,
    k: int,
    *,
    selector: Any = SELECTORS["exponential"],
    sensitivity: Sensitivity = Sensitivity.LOCAL,
    draws: Draws = "peeled",
    loss: PrivacyLoss = LOSS,
    rescore: bool = True,
) -> list[int]:
    chosen = select_top(
        records,
        dataset,
        candidates,
        objective,
        sensitivity,
        selector,
        k,
        draws,
        loss,
        SystemRandomness(),
        Inline(),
        rescore,
    )
    places: list[int] = chosen.tolist()
    return places


@dataclass(frozen=True)
class Recorder(PermuteAndFlip):
    """Records every draw and selects the second candidate if there is one."""

    seen: list[tuple[list[int], int, PrivacyLoss]] = field(default_factory=list, hash=False)

    def top(
        self,
        scores: Integers,
        score_bits: int,
        loss: PrivacyLoss,
        k: int,
        draws: Draws,  # noqa: ARG002 - a single draw
        randomness: Randomness,  # noqa: ARG002
        executor: Executor,  # noqa: ARG002
    ) -> Integers:
        assert k == 1
        self.seen.append((scores.tolist(), score_bits, loss))
        return np.array([min(1, scores.size - 1)])


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_every_draw_is_scored_among_those_who_are_left(sensitivity: Sensitivity) -> None:
    """Draws 1, 2, … must see what an objective on the remaining candidates alone would see."""
    rng = np.random.default_rng(7)
    values, edges = rng.integers(0, 5, (2, 3, 6)), synthetic.path(3)
    universe = synthetic.universe(3, edges, 6)
    recorder = Recorder()
    loss = PrivacyLoss(2 * 10**9 + 3)
    chosen = select(
        pareto(*(Synthetic(table, edges) for table in values)),
        universe.records[1],
        universe.dataset,
        universe.candidates,
        5,
        selector=recorder,
        sensitivity=sensitivity,
        loss=loss,
    )
    assert chosen == [1, 2, 3, 4, 5]
    steps = PermuteAndFlip().steps(loss, 5, "peeled")
    assert [loss for *_, loss in recorder.seen] == [s.loss for s in steps for _ in range(s.times)]
    rest = list(range(6))
    for (actual, score_bits, _), gone in zip(recorder.seen, chosen, strict=True):
        alone = [Synthetic(table[:, rest], edges) for table in values]
        objective = pareto(*alone)
        candidates = synthetic.Points(len(rest))
        grid = objective.grid(universe.dataset, candidates, sensitivity)
        measured = objective.measure(
            universe.records[1], universe.dataset, candidates, sensitivity, grid
        )
        assert actual == scores(measured, grid, sensitivity, score_bits, -1).tolist()
        rest.remove(gone)


def test_the_scores_of_those_who_are_left_can_change_their_order() -> None:
    """(2, 2), (1, 1), (0, 3): with the first gone nobody is ahead of the second."""
    values, edges = np.array([[[2, 1, 0]] * 2, [[2, 1, 3]] * 2]), synthetic.path(2)
    universe = synthetic.universe(2, edges, 3)
    objective = pareto(*(Synthetic(table, edges) for table in values))
    grid = objective.grid(universe.dataset, universe.candidates, Sensitivity.GLOBAL)
    measurement = objective.measure(
        universe.records[0], universe.dataset, universe.candidates, Sensitivity.GLOBAL, grid
    )
    assert measurement.utilities.tolist() == [0, -1, 0]
    rest, smaller = objective.without(measurement, grid, 0)
    assert rest.utilities.tolist() == [0, 0]
    assert (smaller.cap, smaller.largest) == (1, 1)


def test_all_candidates_can_be_drawn() -> None:
    for rescore in (False, True):
        chosen = select(NODES, records_of(WHEEL), dataset_of(7, 6), AllNodes(), 7, rescore=rescore)
        assert sorted(chosen) == list(range(7))


@pytest.mark.long
def test_the_law_is_that_of_two_exact_draws() -> None:
    """1,000 ordered pairs against their law, by χ² at 11 degrees of freedom: 1 in 10⁶."""
    rng = np.random.default_rng(3)
    values, edges = rng.integers(0, 4, (2, 2, 4)), synthetic.path(2)
    universe = synthetic.universe(2, edges, 4)
    objective = pareto(*(Synthetic(table, edges) for table in values))
    record, dataset, candidates = universe.records[0], universe.dataset, universe.candidates
    grid = objective.grid(dataset, candidates, Sensitivity.LOCAL)
    measured = objective.measure(record, dataset, candidates, Sensitivity.LOCAL, grid)
    law: dict[tuple[int, int], float] = {}
    # Each of the two draws has half of ε = 4. A score of one unit weighs exp(ε/2) for the ε of a
    # draw, here exp(4/4).
    weights = np.exp(scores(measured, grid, Sensitivity.LOCAL, 20, -1) / 2**20 * 4 / 4)
    for place, weight in enumerate(weights):
        rest, smaller = objective.without(measured, grid, place)
        odds = np.exp(scores(rest, smaller, Sensitivity.LOCAL, 20, -1) / 2**20 * 4 / 4)
        others = [r for r in range(4) if r != place]
        for other, odd in zip(others, odds, strict=True):
            law[place, other] = weight / weights.sum() * odd / odds.sum()
    runs = 1000
    drawn = Counter(
        tuple(select(objective, record, dataset, candidates, 2, loss=PrivacyLoss.parse("4")))
        for _ in range(runs)
    )
    chi_square = sum((drawn[pair] - runs * p) ** 2 / (runs * p) for pair, p in law.items())
    assert min(law.values()) * runs > 20
    assert chi_square < 49


@pytest.mark.parametrize("draws", ["peeled", "one_shot"])
def test_scored_once_nothing_changes_between_draws(draws: Draws) -> None:
    chosen = select(
        NODES, records_of(WHEEL), dataset_of(7, 6), AllNodes(), 3, draws=draws, rescore=False
    )
    assert len(set(chosen)) == 3


class Unread(Pareto):
    def measure(self, *_: Any) -> Any:
        raise AssertionError("the records were read")


@pytest.mark.parametrize(
    "objective, draws, loss, k, match",
    [
        (UTILITIES["degree"], "peeled", "2", 2, "only scores that compare"),
        (NODES, "one_shot", "2", 2, "one after another"),
        (NODES, "peeled", "0.000000002", 3, "less than the smallest loss"),
        (NODES, "peeled", "2", 8, "k lies between"),
    ],
)
def test_refusals_come_before_the_records_are_read(
    objective: Objective, draws: Draws, loss: str, k: int, match: str
) -> None:
    if objective is NODES:
        objective = Unread([Term(UTILITIES["degree"]), Term(UTILITIES["egocentric_density"])])
    with pytest.raises(UnsupportedQuery, match=match):
        select(
            objective,
            records_of(WHEEL),
            dataset_of(7, 6),
            AllNodes(),
            k,
            draws=draws,
            loss=PrivacyLoss.parse(loss),
        )


def test_both_variants_cost_the_same() -> None:
    for selector in SELECTORS.values():
        once, anew = (
            draw_steps(selector, NODES, LOSS, 3, "peeled", rescore) for rescore in (False, True)
        )
        assert once == selector.steps(LOSS, 3, "peeled")
        assert sum(step.loss.epsilon_nano * step.times for step in anew) == LOSS.epsilon_nano
        assert {step.times for step in anew} <= {1, 2}
    assert plan(dataset_of(7, 6), AllNodes(), NODES, Sensitivity.LOCAL, 3).grid.cap == 6
