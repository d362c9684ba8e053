"""Selection in two stages: its exact law, what it spends, what a quote says, and its refusals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from math import exp
from typing import Any

import pytest
from pydantic import ValidationError

from accounting.privacy_loss import PrivacyLoss
from app.queries import QUERY, QueryContext
from app.queries.parts.stages import Stages
from app.queries.top_k.body import TopK
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.selection.laws import permute_and_flip_probabilities
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.support.randomness import SeededRandomness

#: The degrees are 4, 3, 2, 2, 1.
GRAPH = graph_of(5, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3)])
DEGREES = (4, 3, 2, 2, 1)
DATASET = dataset_of(5, 4)
LOSS = PrivacyLoss.parse("2")


def query(**fields: Any) -> TopK:
    body = {"kind": "top_k", "k": 1, "utilities": [{"name": "degree"}], **fields}
    parsed = QUERY.validate_json(json.dumps(body))
    assert isinstance(parsed, TopK)
    return parsed


def answers(body: TopK, loss: PrivacyLoss, runs: int) -> Iterator[dict[str, Any]]:
    records, randomness = records_of(GRAPH), SeededRandomness(11)
    for _ in range(runs):
        context = QueryContext(records, DATASET, loss, randomness, Inline())
        yield dict(body.compute(context).answer)


def test_the_law_is_that_of_a_set_and_then_of_one_out_of_it() -> None:
    """An edge moves two degrees up or two down: ρ of two is 2, and one draw is one-way."""
    first, second = 0.6, 1.4
    sets = {one: exp(first * sum(DEGREES[r] for r in one) / 2) for one in combinations(range(5), 2)}
    law = dict.fromkeys(range(5), 0.0)
    for listed, weight in sets.items():
        scores = [DEGREES[r] for r in listed]
        chances = permute_and_flip_probabilities(scores, Fraction(exp(-second)))
        for place, r in enumerate(listed):
            law[r] += weight / sum(sets.values()) * float(chances[place])
    body = query(stages={"shortlist": 2, "share": 0.3})
    runs = 2000
    counts = Counter(one["selected"][0] for one in answers(body, LOSS, runs))
    # χ² of four degrees of freedom exceeds 18.5 once in a thousand; the draws are always the same.
    assert sum((counts[r] - runs * p) ** 2 / (runs * p) for r, p in law.items()) < 18.5


def test_the_steps_are_the_charge_and_the_rest_takes_what_is_left() -> None:
    loss = PrivacyLoss(10**9 + 1)
    price = query(stages={"shortlist": 3, "share": 0.3}).price(DATASET, loss)
    assert [(step.what, step.loss.epsilon_nano) for step in price.steps] == [
        ("shortlist: joint exponential mechanism", 300_000_000),
        ("permute-and-flip draw", 700_000_001),
    ]


def test_a_shortlist_as_long_as_the_answer_is_the_answer() -> None:
    body = query(k=2, selector="laplace", stages={"shortlist": 2})
    (answer,) = answers(body, PrivacyLoss.parse("2000"), 1)
    assert answer["selected"] == [0, 1]
    assert answer["values"]["value"] == [4, 3]


def test_what_auto_takes_and_whether_the_order_is_kept() -> None:
    for name, resolved, keeps_order in (
        ("degree", {"sensitivity": "global", "shortlist_sensitivity": "global"}, True),
        (
            "egocentric_betweenness",
            {"sensitivity": "flattened", "shortlist_sensitivity": "shifted"},
            False,
        ),
    ):
        body = query(utilities=[{"name": name}], stages={"shortlist": 3})
        price = body.price(DATASET, LOSS)
        assert resolved.items() <= price.resolved.items()
        assert price.order_preserving is keeps_order
        assert price.accuracy()["shortlist_score_below_best"] > 0
        (answer,) = answers(body, LOSS, 1)
        assert (answer["resolved"], answer["order_preserving"]) == (price.resolved, keeps_order)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.999])
@pytest.mark.parametrize("second", [1, 2, 999_999_999])
def test_the_least_loss_that_leaves_enough_to_the_second_stage(share: float, second: int) -> None:
    stages = Stages(shortlist=2, share=share)
    least = stages.loss_for(PrivacyLoss(second))
    assert stages.losses(least)[1].epsilon_nano >= second
    less = PrivacyLoss(least.epsilon_nano - 1)
    assert stages.losses(less)[1].epsilon_nano < second


def test_a_target_is_that_of_the_second_stage() -> None:
    body = query(stages={"shortlist": 3, "share": 0.25})
    loss = body.loss_reaching(DATASET, {"score_below_best": 2})
    assert body.price(DATASET, loss).accuracy()["score_below_best"] <= 2
    less = PrivacyLoss(loss.epsilon_nano // 2)
    assert body.price(DATASET, less).accuracy()["score_below_best"] > 2


def test_a_share_may_be_a_decimal_text() -> None:
    """As amounts of privacy loss may be; the canonical request is that of the number."""
    text, number = ({"shortlist": 3, "share": share} for share in ("0.3", 0.3))
    assert query(stages=text) == query(stages=number)
    assert query(stages=text).model_dump_json() == query(stages=number).model_dump_json()


@pytest.mark.parametrize(
    "fields",
    [
        {"sensitivity": "shifted", "stages": {"shortlist": 3}},
        {"k": 4, "stages": {"shortlist": 3}},
        {"objective": "pareto", "rescore": True, "stages": {"shortlist": 3}},
        {"stages": {"shortlist": 0}},
        {"stages": {"shortlist": 3, "share": 1}},
        {"stages": {"shortlist": 3, "share": "1"}},
        {"stages": {"shortlist": 3, "share": "a third"}},
        {"stages": {"shortlist": 3, "share": True}},
        {"stages": {"shortlist": 1001}},
    ],
)
def test_stages_that_do_not_fit(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="stages"):
        query(**fields)


def test_a_shortlist_is_not_longer_than_the_list() -> None:
    with pytest.raises(UnsupportedQuery):
        query(stages={"shortlist": 6}).price(DATASET, LOSS)
