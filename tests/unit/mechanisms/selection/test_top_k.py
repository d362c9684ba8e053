"""The selection of the best k: refusals before the draw, and the input of the selector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor, Inline
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import GraphRecords
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.noise.keystream import SystemRandomness
from mechanisms.objectives import Objective, SingleUtility, Term
from mechanisms.selection import SELECTORS, Draws
from mechanisms.selection.dampening import score_bound, scores
from mechanisms.selection.permute_and_flip import PermuteAndFlip
from mechanisms.selection.top_k import Plan, plan, select_top
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Grid
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of

NODES = [name for name, utility in UTILITIES.items() if utility.candidates == "nodes"]
WHEEL = graph_of(7, [(0, v) for v in range(1, 7)] + [(1, 2), (3, 4), (5, 6)])
LOSS = PrivacyLoss.parse("2")


def objective_of(name: str) -> Objective:
    return SingleUtility([Term(UTILITIES[name])])


@dataclass(frozen=True)
class Recorder(PermuteAndFlip):
    """Records its arguments and selects the last candidates."""

    seen: dict[str, Any] = field(default_factory=dict, hash=False)

    def top(
        self,
        scores: Integers,
        score_bits: int,
        loss: PrivacyLoss,
        k: int,
        draws: Draws,
        randomness: Randomness,  # noqa: ARG002 - nothing is drawn
        executor: Executor,  # noqa: ARG002
        *,
        one_way: bool = False,
    ) -> Integers:
        self.seen.update(scores=scores, score_bits=score_bits, loss=loss, k=k, draws=draws)
        self.seen.update(one_way=one_way)
        return np.arange(scores.size - k, scores.size)


class Unread(Mapping[str, Any]):
    """Columns that must not be read."""

    def __getitem__(self, name: str) -> Any:
        raise AssertionError(f"the column {name} was read")

    def __iter__(self) -> Any:
        raise AssertionError("the columns were listed")

    def __len__(self) -> int:
        raise AssertionError("the columns were counted")


UNREAD = GraphRecords(np.zeros(0, np.int64), np.zeros(0, np.int32), Unread())


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("sensitivity", list(Sensitivity))
@pytest.mark.parametrize("draws", ["peeled", "one_shot"])
def test_scores_reach_the_selector(name: str, sensitivity: Sensitivity, draws: Draws) -> None:
    dataset, records, objective = dataset_of(7, 6), records_of(WHEEL), objective_of(name)
    selector = Recorder()
    chosen = select_top(
        records,
        dataset,
        AllNodes(),
        objective,
        sensitivity,
        selector,
        3,
        draws,
        LOSS,
        SystemRandomness(),
        Inline(),
    )
    assert chosen.tolist() == [4, 5, 6]
    grid = objective.grid(dataset, AllNodes(), sensitivity)
    measured = objective.measure(records, dataset, AllNodes(), sensitivity, grid)
    expected = scores(measured, grid, sensitivity, 20, objective.direction)
    actual = selector.seen.pop("scores")
    assert actual.tolist() == expected.tolist()
    assert np.abs(actual).max() <= score_bound(grid, 20)
    # One more edge may raise the scores of these utilities and never lowers one, so all scores move
    # one way.
    one_way = name in ("degree", "core_number", "h_index")
    expected_rest = {"score_bits": 20, "loss": LOSS, "k": 3, "draws": draws, "one_way": one_way}
    assert selector.seen == expected_rest


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
@pytest.mark.parametrize("draws", ["peeled", "one_shot"])
@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_with_a_large_loss_the_hub_comes_first(
    selector: Any, draws: Draws, sensitivity: Sensitivity
) -> None:
    """ε = 1000 a candidate: another first one has a chance below e⁻¹⁰⁰ in every mode."""
    chosen = select_top(
        records_of(WHEEL),
        dataset_of(7, 6),
        AllNodes(),
        objective_of("egocentric_betweenness"),
        sensitivity,
        selector,
        7,
        draws,
        PrivacyLoss.parse("7000"),
        SystemRandomness(),
        Inline(),
    )
    assert chosen[0] == 0
    assert sorted(chosen.tolist()) == list(range(7))


def test_a_single_candidate_is_returned_unread_and_unpaid() -> None:
    chosen = select_top(
        UNREAD,
        dataset_of(1, 0),
        AllNodes(),
        objective_of("degree"),
        Sensitivity.LOCAL,
        SELECTORS["permute_and_flip"],
        1,
        "peeled",
        PrivacyLoss(0),
        SystemRandomness(),
        Inline(),
    )
    assert chosen.tolist() == [0]


@pytest.mark.parametrize("k, loss, match", [(8, "1", "k lies"), (1, "0", "loss"), (0, "1", "k")])
def test_refusals_come_before_the_records_are_read(k: int, loss: str, match: str) -> None:
    with pytest.raises(UnsupportedQuery, match=match):
        select_top(
            UNREAD,
            dataset_of(7, 6),
            AllNodes(),
            objective_of("egocentric_betweenness"),
            Sensitivity.SHIFTED,
            SELECTORS["permute_and_flip"],
            k,
            "peeled",
            PrivacyLoss.parse(loss),
            SystemRandomness(),
            Inline(),
        )


def test_the_plan_is_made_of_public_facts() -> None:
    dataset, objective = dataset_of(37_700, 10_000), objective_of("egocentric_betweenness")
    actual = plan(dataset, AllNodes(), objective, Sensitivity.SHIFTED, 10)
    grid = objective.grid(dataset, AllNodes(), Sensitivity.SHIFTED)
    influence = objective.joint_influence(dataset, AllNodes(), Sensitivity.SHIFTED, grid, 20)
    assert actual == Plan(grid, score_bits=20, count=37_700, influence=influence)
    assert actual.grid.bits == 24
    # For more than 2¹¹ draws the grid of scores has fewer bits q, so that k · 2^q stays within 2³¹.
    for k, bits in ((2048, 20), (2049, 19), (4096, 19), (37_700, 15)):
        assert plan(dataset, AllNodes(), objective, Sensitivity.SHIFTED, k).score_bits == bits


def test_another_relation_is_refused() -> None:
    dataset = replace(dataset_of(7, 6), neighbouring=NeighbouringRelation.ADD_REMOVE)
    with pytest.raises(UnsupportedQuery, match="add_remove") as refusal:
        plan(dataset, AllNodes(), objective_of("degree"), Sensitivity.LOCAL, 1)
    assert refusal.value.supported == {"neighbouring": ["edge"]}


def test_candidates_of_another_kind_are_refused() -> None:
    class Attributes(AllNodes):
        kind = "attributes"

    with pytest.raises(UnsupportedQuery, match="attributes") as refusal:
        plan(dataset_of(7, 6), Attributes(), objective_of("degree"), Sensitivity.LOCAL, 1)
    assert refusal.value.supported == {"candidates": "nodes"}


@pytest.mark.parametrize("k", [-1, 0, 8, 10**9])
def test_a_k_that_no_list_holds_is_refused(k: int) -> None:
    with pytest.raises(UnsupportedQuery, match="between 1 and the number of candidates, 7"):
        plan(dataset_of(7, 6), AllNodes(), objective_of("degree"), Sensitivity.LOCAL, k)


@pytest.mark.parametrize(
    "grid",
    [
        Grid(bits=1, cap=1, horizon=1, largest=2**61),
        Grid(bits=1, cap=2**62, horizon=1, largest=1),
        Grid(bits=1, cap=1, horizon=2**42, largest=1),
    ],
)
def test_bounds_beyond_64_bits_are_refused(grid: Grid) -> None:
    objective = SingleUtility([Term(UTILITIES["degree"])])
    objective.grid = lambda *_: grid  # type: ignore[method-assign]
    with pytest.raises(UnsupportedQuery, match="exceed exact arithmetic"):
        plan(dataset_of(7, 6), AllNodes(), objective, Sensitivity.LOCAL, 1)
