"""Clipped sums as served: the law of the answer, what a quote says of it, and its targets."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from math import exp
from typing import Any

import pytest

from accounting.privacy_loss import PrivacyLoss
from app.queries import QUERY, QueryContext
from app.queries.top_k.body import TopK
from mechanisms.model.candidates import AllNodes
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.automatic import rule_at
from mechanisms.selection.dampening import scores
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.support.randomness import SeededRandomness

#: The test graph has two hubs of 9 and 8 neighbours, three nodes of degree 3 to 5, and leaves.
NODES, HUBS, MIDDLE = 24, {0, 1}, {2, 3, 4}
EDGES = [(0, v) for v in range(2, 11)] + [(1, v) for v in range(11, 19)]
EDGES += [(2, 19), (2, 20), (3, 21), (3, 22), (4, 23), (2, 3), (3, 4)]
RECORDS, DATASET = records_of(graph_of(NODES, EDGES)), dataset_of(NODES, NODES - 1)
SUM = [{"name": "degree", "weight": 1}, {"name": "egocentric_density", "weight": 0.05}]
CLIP, LOSS = 4, PrivacyLoss.parse("2")


def body(**fields: Any) -> TopK:
    request = {"kind": "top_k", "k": 2, "objective": "weighted_sum", "utilities": SUM, **fields}
    parsed = QUERY.validate_json(json.dumps(request))
    assert isinstance(parsed, TopK)
    return parsed


@pytest.mark.long
def test_the_law_is_that_of_a_set_of_clipped_scores() -> None:
    """Clipped nodes are ties, those of degree 3 and leaves alike, and ρ is 2 + 2η."""
    objective, local = body()._objective(), Sensitivity.LOCAL
    grid = objective.grid(DATASET, AllNodes(), local)
    measured = objective.measure(RECORDS, DATASET, AllNodes(), local, grid)
    units = [each / 2**20 for each in scores(measured, grid, local, 20, 1).tolist()]
    rate = 2 / (2 + 2 * 0.1 / (4 * 5.1))
    weights = {
        chosen: exp(rate * sum(max(units[node], CLIP) for node in chosen))
        for chosen in combinations(range(NODES), 2)
    }
    law: Counter[tuple[int, int]] = Counter()
    for chosen, weight in weights.items():
        law[kind_of(chosen)] += weight / sum(weights.values())  # type: ignore[assignment]
    runs, randomness, counts = 500, SeededRandomness(5), Counter[tuple[int, int]]()
    for _ in range(runs):
        context = QueryContext(RECORDS, DATASET, LOSS, randomness, Inline())
        answer = body().compute(context).answer
        counts[kind_of(answer["selected"])] += 1
    likely = {kind: p * runs for kind, p in law.items() if p * runs >= 5}
    assert set(likely) == {(2, 0), (1, 0), (1, 1), (0, 0)}
    # χ² with three degrees of freedom exceeds 16.3 once in a thousand. The seed is fixed, so the
    # test cannot fail by chance.
    assert sum((counts[kind] - e) ** 2 / e for kind, e in likely.items()) < 16.3


def kind_of(chosen: Any) -> tuple[int, int]:
    """How many of the two are hubs, and how many are in the middle."""
    return len(HUBS & set(chosen)), len(MIDDLE & set(chosen))


def test_a_quote_names_the_clip_and_what_may_be_selected() -> None:
    price = body().price(DATASET, LOSS)
    named = {
        "sensitivity": "local",
        "selector": "subset",
        "score_floor": "4",
        "reason": rule_at("weighted_sum of nodes", 2, LOSS).reason,
    }
    assert price.resolved == named
    assert price.order_preserving is False
    assert "Scores below 4 count as 4" in price.accuracy()["explanation"]
    assert price.total() == LOSS
    answer = body().compute(QueryContext(RECORDS, DATASET, LOSS, SeededRandomness(1), Inline()))
    assert answer.answer["resolved"] == named
    assert answer.answer["ordered"] is False
    larger = body().price(DATASET, PrivacyLoss.parse("3"))
    assert "score_floor" not in larger.resolved
    assert larger.resolved["sensitivity"] == "local"
    assert "count as" not in larger.accuracy()["explanation"]


@pytest.mark.parametrize("error", [0.5, 3.0, 6.0, 20.0])
def test_a_target_is_reached_with_and_without_the_clip(error: float) -> None:
    loss = body().loss_reaching(DATASET, {"score_below_best": error})
    assert body().price(DATASET, loss).accuracy()["score_below_best"] <= error * 1.001
    less = PrivacyLoss(loss.epsilon_nano * 9 // 10)
    below = body().price(DATASET, less)
    assert (
        below.accuracy()["score_below_best"] > error
        or below.resolved != body().price(DATASET, loss).resolved
    )
