"""Averages of tables with Gaussian noise: their values, their intervals, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import PrivacyLoss, format_units
from app.queries.table.answer import answer_of
from app.usecases.averages import obstacle
from mechanisms.noise.discrete_gaussian import Deviation
from mechanisms.tables.aggregates import CountOf, MeanOf, SumOf
from mechanisms.tables.columns import TableColumns
from mechanisms.tables.grouping import Levels
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals
from mechanisms.tables.tabulate import release
from privypurse import Table, TopK, average
from privypurse.answers.averages import Noise, half_width
from tests.support.contexts import context
from tests.support.randomness import SeededRandomness
from tests.unit.mechanisms.tables.worlds import dataset_of, people, request

RECORDS = people()
RANDOM = SeededRandomness(3)
QUERY = {"kind": "table"}


def described(**options: Any) -> Any:
    aggregates = [CountOf(), SumOf("age"), MeanOf("age")]
    return request([Levels("town"), Levels("sex")], aggregates, **options)


def reply(id: str, answer: Mapping[str, Any], rho: str | None) -> dict[str, Any]:
    return {
        "id": id,
        "dataset": "people",
        "dataset_version": 1,
        "query": QUERY,
        "charge": {"epsilon": None if rho else "1", "delta": "0", "rho": rho or "0.1"},
        "remaining": {"epsilon": "0", "delta": "0", "rho": "1"},
        "steps": [],
        "receipt": "ab",
        "answer": answer,
    }


def table(id: str, rho_femto: int, plan_request: Any = None) -> Table:
    plan = TablePlan(plan_request or described(), dataset_of(), PrivacyLoss(0, 0, rho_femto, 1))
    at = context(RECORDS, plan.dataset, plan.loss, RANDOM)
    answer = answer_of(plan, TableColumns(plan, release(at, plan)))
    return Table.read(reply(id, answer, format_units(rho_femto, 15)), {})


@pytest.mark.parametrize(
    ("plan_request", "changes", "why"),
    [
        (None, {}, None),
        (described(), {"dataset_version": 2}, "no longer read"),
        (described(), {"charge": {"epsilon": "1", "delta": "0", "rho": "0.1"}}, "Gaussian"),
        (described(), {"query": {"kind": "table", "non_negative": True}}, "never negative"),
        (request([Levels("town")], [MeanOf("age")]), {}, "no counts or sums"),
        (described(), {"suppressed": True}, "suppressed"),
        (described(), {"answer": {"noise": [{"what": "count", "by": None}]}}, "no steps"),
    ],
)
def test_the_service_offers_another_answer_where_the_client_averages(
    plan_request: Any, changes: dict[str, Any], why: str | None
) -> None:
    replies = [dict(table(id, 10**13, plan_request).reply) for id in "ab"]
    for one in replies:
        answer = one["answer"] | changes.get("answer", {})
        if "suppressed" in changes:
            answer["suppressed"] = [False] * 8
        one.update({name: of for name, of in changes.items() if name in one} | {"answer": answer})
    obstacles = [obstacle(one, 1) for one in replies]
    if why is None:
        assert obstacles == [None, None]
        assert average([Table.read(one, {}) for one in replies]).cells.columns
        return
    assert all(one is not None and why in one for one in obstacles)
    # In the case where both answers came from version 2 of the records, the second now comes from
    # version 1. The client must not average answers from different versions either.
    replies[1]["dataset_version"] = 1
    with suppress(ValueError):
        assert not average([Table.read(one, {}) for one in replies]).cells.columns


def width(column: Mapping[str, Any]) -> float:
    return float(column["high"][0]) - float(column["low"][0])


@pytest.mark.parametrize("measured", [False, True])
def test_two_answers_have_the_noise_of_one_at_the_sum(measured: bool) -> None:
    totals = MeasuredTotals(((), ("sex",)), Fraction(1, 3)) if measured else "sums"
    plan_request = described(totals=totals, consistent=measured)
    first, second = table("a", 10**13, plan_request), table("b", 3 * 10**13, plan_request)
    both = average([first, second])
    assert str(both.rho) == "0.04"
    assert both.cells.columns.keys() == {"count", "sum(age)"}
    values = [one.cells.columns["count"]["value"][0] for one in (first, second)]
    assert both.cells.columns["count"]["value"][0] == pytest.approx(np.dot(values, [0.25, 0.75]))
    whole = table("c", 4 * 10**13, plan_request)
    for mean, one in [
        (both.cells, whole.cells),
        (both.total("sex"), whole.total("sex")),
        (both.total(), whole.total()),
    ]:
        for name in ("count", "sum(age)"):
            least = width(one.columns[name])
            # The interval ends of one answer are whole numbers, and those of an average of answers
            # are not. So the widths of the intervals may differ by a few units.
            assert least - 2 <= width(mean.columns[name]) <= 1.01 * least + 3


def test_intervals_of_averages_hold_as_often_as_they_say() -> None:
    truths = [
        ((RECORDS.codes["town"] == town) & (RECORDS.codes["sex"] == sex)).sum()
        for town in range(4)
        for sex in range(2)
    ]
    hits, whole = [], []
    for run in range(30):
        both = average([table(f"{run}{id}", rho) for id, rho in (("a", 10**13), ("b", 10**14))])
        column = both.cells.columns["count"]
        hits += [
            low <= truth <= high
            for low, truth, high in zip(column["low"], truths, column["high"], strict=True)
        ]
        total = both.total().columns["count"]
        whole.append(total["low"][0] <= len(RECORDS.codes["town"]) <= total["high"][0])
    # In fewer than one of 10,000 runs, fewer than 214 or all of 240 intervals at 95 % contain the
    # true count.
    assert 214 <= sum(hits) < 240
    assert sum(whole) >= 24


@pytest.mark.parametrize("steps", [(700, 700), (1024, 1500), (3000, 9000), (2048, 2048, 5000)])
def test_the_width_misses_with_less_than_its_chance(steps: tuple[int, ...]) -> None:
    """Against the exact law of the weighted sum of discrete Gaussians."""
    squares = [Deviation(one).square for one in steps]
    precision = [1 / one for one in squares]
    weights = [float(one / sum(precision)) for one in precision]
    sums, masses = np.zeros(1), np.ones(1)
    for square, weight in zip(squares, weights, strict=True):
        reach = int(7 * sqrt(float(square))) + 1
        places = np.arange(-reach, reach + 1)
        law = np.exp(-(places**2) / (2 * float(square)))
        sums = np.add.outer(sums, weight * places).ravel()
        masses = np.multiply.outer(masses, law / law.sum()).ravel()
    noises = [Noise(sqrt(float(one)), 1.0, 1) for one in squares]
    reached = half_width(noises, weights, 0.05)
    assert masses[np.abs(sums) > reached].sum() <= 0.05
    least = noises[0].least_half_width(0.05)
    assert least <= 1.96 * noises[0].spread


def test_what_is_not_averaged() -> None:
    one, other = table("a", 10**13), table("b", 10**13)

    def changed(table: Table, **members: Any) -> Table:
        return Table.read({**table.reply, "id": "c", **members}, {})

    answer = dict(other.reply["answer"])
    for answers, words in [
        ([one], "two or more"),
        ([one, one], "two or more different"),
        ([one, changed(other, dataset_version=2)], "one version"),
        ([one, changed(other, query={**QUERY, "by": ["town"]})], "one question"),
        ([changed(one, charge=reply("c", {}, None)["charge"]), other], "Gaussian"),
        (
            [
                changed(one, query={**QUERY, "non_negative": True}),
                Table.read({**other.reply, "query": {**QUERY, "non_negative": True}}, {}),
            ],
            "too high",
        ),
        ([one, changed(other, answer={**answer, "suppressed": [False] * 8})], "suppressed"),
    ]:
        with pytest.raises(ValueError, match=words):
            average(answers)
    selected = TopK.read({**one.reply, "answer": {"selected": ["a"], "ordered": True}}, {})
    with pytest.raises(ValueError, match="only tables"):
        average([selected, selected])  # type: ignore[list-item]
