"""A request is interpreted once per dataset, and its reply is compact JSON."""

from __future__ import annotations

import json
from uuid import UUID

import numpy as np
import pytest

from accounting.privacy_loss import NANO, PrivacyLoss, format_units
from accounting.rho import pure_femto
from app.engine.requests import QueryRequest, written
from app.queries.statistic.body import StatisticQuery
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.records import TableRecords
from mechanisms.statistics import MECHANISMS
from storage.ledger.requests import Reservation
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness

REQUEST = {
    "dataset": "people",
    "epsilon": "0.25",
    "query": {
        "kind": "statistic",
        "statistic": "count",
        "where": {"attribute": "größe", "in": ['"groß"']},
    },
}


def people() -> Dataset:
    attribute = CategoricalAttribute("größe", ('"groß"', "klein"))
    domain = TableDomain((attribute,), rows=None, max_rows=100)
    return Dataset("people", NeighbouringRelation.ADD_REMOVE, domain)


def selected(selector: str = "auto") -> QueryRequest:
    query = {
        "kind": "selection",
        "candidates": {"values_of": "größe"},
        "utilities": [{"name": "count"}],
        "selector": selector,
    }
    return QueryRequest.model_validate_json(json.dumps(REQUEST | {"query": query}))


def test_one_candidate_costs_a_quarter_of_rho_where_accounts_count_in_it() -> None:
    request, dataset = selected(), people()
    plain, in_rho = request.priced(dataset), request.priced(dataset, True)
    assert [one.query.price(dataset, request.loss).resolved["selector"]
            for one in (plain, in_rho)] == ["permute_and_flip", "exponential"]  # fmt: skip
    assert plain.charge.epsilon_nano == in_rho.charge.epsilon_nano == NANO // 4
    assert plain.charge.rho_femto == pure_femto(NANO // 4)
    assert in_rho.charge.rho_femto == 10**15 // 4**2 // 8
    assert request.canonical == selected().canonical
    # A selector that the request names is used in every account. Only the default differs.
    named = selected("permute_and_flip").priced(dataset, True)
    assert named.charge == plain.charge
    assert request.priced(dataset, True) is in_rho or request.priced(dataset, True).in_rho


def test_a_later_attempt_has_the_defaults_of_the_charge() -> None:
    """Danger: with those of another account it would lose more ρ than was charged."""
    request, dataset = selected(), people()
    plain, in_rho = (request.priced(dataset, way).charge.rho_femto for way in (False, True))
    for charged, way in ((plain, False), (in_rho, True), (plain + 1, False), (plain - 1, True)):
        assert request.priced_at(dataset, charged).in_rho is way


def test_a_later_attempt_never_loses_more_rho_than_was_charged() -> None:
    """A version that divided ε otherwise may have charged less ρ than the query costs in this."""
    request, dataset = QueryRequest.model_validate_json(json.dumps(REQUEST)), people()
    priced = request.priced(dataset)
    records = TableRecords({"größe": np.zeros(5, np.uint8)}, {})
    within = context(records, dataset, request.loss, SeededRandomness(1))
    for charged in (None, priced.charge.rho_femto, priced.charge.rho_femto + 1):
        assert "value" in priced.compute(within, charged).answer
    with pytest.raises(UnsupportedQuery):
        priced.compute(within, priced.charge.rho_femto - 1)


LOSS = {"epsilon": "0.25", "delta": "0"}
RHO = format_units(pure_femto(NANO // 4), 15)


def test_a_reply_is_compact_json() -> None:
    request = QueryRequest.model_validate_json(json.dumps(REQUEST))
    id, remaining = UUID(int=7), PrivacyLoss(10**8, 3)
    reservation = Reservation(id, 1, 4, 0, bytes(range(32)), remaining)
    reply = request.priced(people()).reply(reservation, {"value": -3, "noise_scale": 4.0})
    assert list(json.loads(reply).items()) == [
        ("id", str(id)),
        ("status", "answered"),
        ("dataset", "people"),
        ("dataset_version", 4),
        ("query", request.query.model_dump(mode="json")),
        ("charge", {**LOSS, "rho": RHO, "neighbouring": "add_remove"}),
        ("remaining", {"epsilon": "0.1", "delta": "0.000000000000000003"}),
        (
            "steps",
            [
                {
                    "what": "Laplace noise: count",
                    **LOSS,
                    "rho": RHO,
                    "times": 1,
                    "composition": "sequential",
                }
            ],
        ),
        (
            "answer",
            {
                "question": 'How many records of people version 4 are there where größe is "groß"?',
                "value": -3,
                "noise_scale": 4.0,
            },
        ),
        ("receipt", bytes(range(32)).hex()),
    ]
    assert reply == written(json.loads(reply)).encode()
    assert "größe" in reply.decode()


def test_a_request_is_priced_once_for_the_same_dataset() -> None:
    request = QueryRequest.model_validate_json(json.dumps(REQUEST))
    one, other = people(), people()
    priced = request.priced(one)
    assert request.priced(one) is priced
    assert request.priced(other) is not priced
    assert request.priced(other).dataset is other


def test_the_scale_of_noise_is_that_of_the_dataset_and_the_loss() -> None:
    def bounded(upper: float) -> Dataset:
        attribute = NumericAttribute("age", 0, upper, (0, upper))
        domain = TableDomain((attribute,), rows=None, max_rows=100)
        return Dataset("people", NeighbouringRelation.ADD_REMOVE, domain)

    query = StatisticQuery(kind="statistic", statistic="sum", attribute="age")
    laplace = MECHANISMS["laplace"]
    young, old = bounded(10), bounded(100)
    for dataset, epsilon in ((young, 1), (young, 1), (old, 1), (old, 2), (young, 1)):
        scale = query._noise_scale(laplace, dataset, PrivacyLoss(epsilon * 10**9))
        assert scale is not None
        assert float(scale) == pytest.approx((10 if dataset is young else 100) / epsilon, rel=1e-5)
