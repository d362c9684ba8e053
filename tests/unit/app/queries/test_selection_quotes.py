"""The predictions of quotes for selections, from public facts, and the ε for a target error."""

from __future__ import annotations

import json
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss
from app.queries import QueryContext
from app.queries.parts.accuracy import CONFIDENCE
from app.queries.selection.body import Selection
from mechanisms.model.candidates import AllNodes
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Inline
from mechanisms.model.sensitivity import Sensitivity
from mechanisms.selection.dampening import scores
from tests.evidence.certification.graphs import dataset_of, graph_of, records_of
from tests.support.randomness import SeededRandomness
from tests.support.service import Service

PAIR = [{"name": "degree"}, {"name": "egocentric_density"}]
SUM = [{"name": "degree", "weight": 2}, {"name": "egocentric_density", "weight": -300}]
#: The queries to quote. Each has its objective, its utilities, and the sensitivity Δ of a single
#: utility.
ASKED: list[tuple[str, list[dict[str, Any]], float | None]] = [
    ("single", [{"name": "degree"}], 1),
    ("single", [{"name": "egocentric_betweenness"}], 3),
    ("weighted_sum", SUM, None),
    ("pareto", PAIR, None),
]
#: A factor of each selector in the bound on the probability that a draw is far below the best.
MISSES = {"exponential": 1.0, "permute_and_flip": 0.5}


@pytest.fixture
def graph(people: Service) -> Service:
    people.dataset("olga", cap={"epsilon": "100000", "delta": "0"})
    people.grant("olga", "triangle", "ana", "100000")
    return people


def quote(service: Service, **body: Any) -> Any:
    reply = service("ana", "POST", "/v1/quotes", json={"dataset": "triangle", **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_it_is_in_units_of_the_score(graph: Service) -> None:
    """Five nodes, three draws at ε = 2 each: one unit is one step of the sensitivity, whatever the
    weights and however many are left."""
    for (objective, utilities, unit), sensitivity, selector in product(ASKED, Sensitivity, MISSES):
        query = {"kind": "top_k", "k": 3, "utilities": utilities, "objective": objective,
                 "sensitivity": sensitivity, "selector": selector}  # fmt: skip
        variants = [query, {**query, "rescore": True}] if objective == "pareto" else [query]
        expected = log(3 * 4 * MISSES[selector] / (1 - CONFIDENCE))
        constant = utilities == [{"name": "degree"}]
        if constant:
            # An edge changes all degrees in one direction, so half of the noise suffices.
            expected /= 2
        for variant in variants:
            accuracy = quote(graph, epsilon=6, query=variant)["accuracy"]
            assert accuracy["confidence"] == CONFIDENCE
            assert accuracy["score_below_best"] == pytest.approx(expected, rel=1e-3)
            if unit is not None and (constant or sensitivity is Sensitivity.GLOBAL):
                assert accuracy["utility_below_best"] == pytest.approx(unit * expected, rel=1e-3)
            else:
                assert "utility_below_best" not in accuracy


def test_the_epsilon_for_an_error_reaches_it(graph: Service) -> None:
    kinds: list[dict[str, Any]] = [
        {"kind": "selection"},
        {"kind": "top_k", "k": 2, "selector": "exponential"},
        {"kind": "top_k", "k": 2, "selector": "subset", "sensitivity": "local"},
    ]
    for (objective, utilities, _), kind in product(ASKED, kinds):
        query = {**kind, "utilities": utilities, "objective": objective}
        for error in (0.5, 3.0):
            reached = quote(graph, target={"score_below_best": error}, query=query)
            # A quote states a predicted error with four digits.
            assert reached["accuracy"]["score_below_best"] == pytest.approx(error, rel=1e-3)
            direct = quote(graph, epsilon=reached["charge"]["epsilon"], query=query)
            assert direct == reached


RECORDS = records_of(graph_of(7, [(0, v) for v in range(1, 7)] + [(1, 2), (2, 3), (1, 3), (4, 5)]))
DATASET: Dataset = dataset_of(7, 6)
#: All kinds of sensitivity that a query can name. Two of them are tested in slow runs only.
EVERY_SENSITIVITY = [
    Sensitivity.GLOBAL,
    Sensitivity.LOCAL,
    pytest.param(Sensitivity.FLATTENED, marks=pytest.mark.slow),
    pytest.param(Sensitivity.SHIFTED, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("sensitivity", EVERY_SENSITIVITY)
@pytest.mark.parametrize(
    ("objective", "utilities"), [case[:2] for case in ASKED], ids=[case[0] for case in ASKED]
)
@pytest.mark.long
def test_answers_keep_what_the_quote_says(
    objective: str, utilities: list[dict[str, Any]], sensitivity: Sensitivity
) -> None:
    """300 answers, of which a wrong prediction of 95 % would let more than 30 fail; a right one
    does with probability below 10⁻³."""
    loss = PrivacyLoss.parse("8")
    body = {"kind": "selection", "utilities": utilities, "objective": objective}
    query = Selection.model_validate_json(json.dumps({**body, "sensitivity": sensitivity}))
    bound = query.price(DATASET, loss).accuracy()["score_below_best"]
    public = query._terms(DATASET, loss).public
    ranked = query._objective()
    measured = ranked.measure(RECORDS, DATASET, AllNodes(), sensitivity, public.grid)
    score_row = scores(measured, public.grid, sensitivity, public.score_bits, ranked.direction)
    randomness = SeededRandomness(5)
    fell = [
        (score_row.max() - score_row[drawn(query, loss, randomness)]) / 2**public.score_bits
        for _ in range(300)
    ]
    assert (np.array(fell) > bound).sum() <= 30


def drawn(query: Selection, loss: PrivacyLoss, randomness: SeededRandomness) -> int:
    release = query.compute(QueryContext(RECORDS, DATASET, loss, randomness, Inline()))
    return int(release.answer["selected"])


def test_a_quote_says_where_the_passes_of_a_pareto_score_clip_it(graph: Service) -> None:
    """Below the clip candidates count alike, so no bound beyond it is promised."""
    query = {"kind": "top_k", "k": 2, "utilities": PAIR, "objective": "pareto", "passes": 5}
    for sensitivity in ("local", "flattened"):
        clipped = {**query, "sensitivity": sensitivity}
        small = quote(graph, epsilon="0.5", query=clipped)["accuracy"]
        assert (small["passes"], small["score_below_best"]) == (5, None)
        assert "5 below the best count alike" in small["explanation"]
        assert small["epsilon_least"] == pytest.approx(4 * (log(5 * 2) + 3) / 4, rel=1e-3)
        large = quote(graph, epsilon="50", query=clipped)["accuracy"]
        assert large["score_below_best"] < 5
        # A Pareto score takes a number of passes over the candidates. Scores further below the best
        # than this number count alike. So one pass is too few for two draws, at any ε.
        few = quote(graph, epsilon="50", query={**clipped, "passes": 1})["accuracy"]
        assert few["epsilon_least"] is None
        body = {"dataset": "triangle", "query": clipped, "target": {"score_below_best": 5}}
        assert graph("ana", "POST", "/v1/quotes", json=body).status_code == 422
    for sensitivity in ("global", "shifted"):
        plain = quote(graph, epsilon="0.5", query={**query, "sensitivity": sensitivity})
        assert plain["accuracy"]["score_below_best"] > 5
        assert "passes" not in plain["accuracy"]
