"""Counts and sums of groups of an open domain are (ε, δ)-private together.

A cell is one outcome: not released, or a noisy count v ≥ τ with a noisy sum s. Where v or s lies
outside of all exact numbers, the ratio of two laws is constant, so each such side is one outcome.
The law is tied to the code by releases with shifted numbers in place of noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from mechanisms.model.domains import Dataset, NeighbouringRelation, NumericAttribute, TableDomain
from mechanisms.model.open_domain import OpenAttribute
from mechanisms.model.records import TableRecords
from mechanisms.noise.discrete_laplace import discrete_laplace_probability
from mechanisms.tables import noise, open_groups
from mechanisms.tables.aggregates import MeanOf, SumOf, VarianceOf
from mechanisms.tables.grouping import Levels
from mechanisms.tables.noise import LaplaceNoise
from mechanisms.tables.open_groups import OpenPlan, release_groups
from mechanisms.tables.parts import Count, Sum
from mechanisms.tables.request import TableRequest
from tests.evidence.certification.test_open_domains import cell_law, open_values, rational_exp
from tests.support.contexts import context

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
MOST, VALUES, NUMBERS = 2, "ab", (0, 1)
LOSS = PrivacyLoss(2 * NANO, ATTO // 10)
#: A row: a value of the open attribute, whose values no description lists, and a number.
Row = tuple[str, int]
Rows = tuple[Row, ...]
#: The exact number of rows and the exact sum of each value that occurs.
Groups = Mapping[str, tuple[int, int]]


def dataset(relation: NeighbouringRelation) -> Dataset:
    rows = {"rows": MOST} if relation is REPLACE else {"max_rows": MOST}
    number = NumericAttribute("x", 0.0, 1.0, (0.0, 1.0))
    return Dataset("open", relation, TableDomain((OpenAttribute("V"), number), **rows))


def plan(relation: NeighbouringRelation, *aggregates: Any, loss: PrivacyLoss = LOSS) -> OpenPlan:
    chosen = aggregates or (SumOf("x"),)
    request = TableRequest((Levels("V"),), chosen, (None,) * len(chosen))
    return OpenPlan.of(request, dataset(relation), loss)


def records(rows: Rows) -> TableRecords:
    codes, values = open_values(tuple(value for value, _ in rows))
    numbers = np.array([number for _, number in rows], np.float64)
    bins = np.zeros(len(rows), np.uint8)
    return TableRecords({"V": codes, "x": bins}, {"x": numbers}, open_values={"V": values})


def datasets(relation: NeighbouringRelation) -> Iterator[Rows]:
    for size in [MOST] if relation is REPLACE else range(MOST + 1):
        yield from product(product(VALUES, NUMBERS), repeat=size)


def neighbours(rows: Rows, relation: NeighbouringRelation) -> Iterator[Rows]:
    for row in product(VALUES, NUMBERS):
        if relation is REPLACE:
            for place in range(len(rows)):
                yield (*rows[:place], row, *rows[place + 1 :])
        elif len(rows) < MOST:
            yield (*rows, row)


def groups_of(rows: Rows) -> Groups:
    return {
        value: (
            sum(v == value for v, _ in rows),
            sum(number for v, number in rows if v == value),
        )
        for value, _ in rows
    }


def sum_law(exact: int, top: int, p: Fraction) -> dict[int, Fraction]:
    """The law of a noisy sum in steps; −1 stands for all sums below 0, ``top`` for all from it."""
    law = {s: discrete_laplace_probability(s - exact, p) for s in range(top)}
    law[-1], law[top] = p ** (exact + 1) / (1 + p), p ** (top - exact) / (1 + p)
    return law


def joint_law(
    group: tuple[int, int] | None, threshold: int, p: Fraction, of_sum: Fraction
) -> dict[Any, Fraction]:
    """The law of one cell."""
    if group is None:
        return {None: Fraction(1)}
    counts = cell_law(group[0], threshold, max(threshold, MOST), p)
    sums = sum_law(group[1], MOST, of_sum)
    law = {(v, s): a * b for (v, a), (s, b) in product(counts.items(), sums.items()) if v}
    return {**law, None: counts[None]}


def worst(
    relation: NeighbouringRelation, public: OpenPlan, threshold: int, loss: PrivacyLoss
) -> Fraction:
    """The largest divergence of neighbours at e^ε, for sums in steps of their whole cap."""
    one = next(one for one in public.measurements if one.part == Sum("x"))
    assert isinstance(one.noise, LaplaceNoise)
    # The numbers 0 and 1 differ by the cap, the most that a row adds to a sum. Smaller steps
    # between them would not change the loss, because the noise has the same rate per cap.
    p, of_sum = rational_exp(public.rate), exp_of(one.noise.rate.exponent() * one.grid.cap)
    growth = 1 / exp_of(loss.epsilon())

    def divergence(x: Groups, y: Groups) -> Fraction:
        cells = [cell for cell in VALUES if x.get(cell) != y.get(cell)]
        laws = [
            [joint_law(one.get(cell), threshold, p, of_sum) for cell in cells] for one in (x, y)
        ]
        total = Fraction(0)
        for outcome in product(*(a for a in laws[0])):
            first = second = Fraction(1)
            for value, a, b in zip(outcome, *laws, strict=True):
                first, second = first * a[value], second * b.get(value, Fraction(0))
            total += max(Fraction(0), first - growth * second)
        return total

    return max(
        divergence(groups_of(a), groups_of(b))
        for x in datasets(relation)
        for y in neighbours(x, relation)
        for a, b in ((x, y), (y, x))
    )


def exp_of(exponent: Fraction) -> Fraction:
    """e^−exponent to 60 digits."""
    import mpmath

    with mpmath.workdps(70):
        ratio = mpmath.mpf(exponent.numerator) / exponent.denominator
        return Fraction(str(mpmath.nstr(mpmath.exp(-ratio), 60)))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_counts_and_sums_lose_epsilon_and_delta_together(relation: NeighbouringRelation) -> None:
    public = plan(relation)
    allowed = Fraction(LOSS.delta_atto, ATTO)
    assert 0 < worst(relation, public, public.threshold, LOSS) <= allowed
    assert worst(relation, public, public.threshold - 1, LOSS) > allowed


def test_a_whole_epsilon_for_both_is_too_much() -> None:
    """The noise of 2ε in place of ε: each of the two parts has all of ε, and not its share."""
    loss = PrivacyLoss(NANO, 28 * ATTO // 100)
    right, wrong = (plan(ADD_REMOVE, loss=replace(loss, epsilon_nano=n * NANO)) for n in (1, 2))
    assert wrong.threshold == 2
    allowed = Fraction(loss.delta_atto, ATTO)
    assert worst(ADD_REMOVE, wrong, wrong.threshold, loss) > allowed
    assert worst(ADD_REMOVE, right, right.threshold, loss) <= allowed


def test_the_steps_spend_the_loss_once() -> None:
    public = plan(ADD_REMOVE, SumOf("x"), MeanOf("x"), VarianceOf("x"))
    steps = public.steps()
    assert len(steps) == 4
    assert sum(step.loss.epsilon_nano for step in steps) == LOSS.epsilon_nano
    assert [step.loss.delta_atto for step in steps if "threshold" in step.what] == [LOSS.delta_atto]
    assert sum(step.loss.delta_atto for step in steps) == LOSS.delta_atto


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_the_code_releases_the_sums_of_the_groups_at_the_threshold(
    relation: NeighbouringRelation, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = plan(relation)
    shift = public.threshold - MOST
    sizes = set()

    def shifted(exact: Any, *_: Any) -> Any:
        sizes.add(len(exact))
        return exact + shift

    monkeypatch.setattr(noise, "discrete_laplace", shifted)
    cap = next(one.grid.cap for one in public.measurements if one.part == Sum("x"))
    for rows in datasets(relation):
        released = release_groups(context(records(rows), public.dataset, LOSS), public)
        expected = {
            value: (count + shift, total * cap + shift)
            for value, (count, total) in sorted(groups_of(rows).items())
            if count + shift >= public.threshold
        }
        assert list(released.labels[0]) == list(expected)
        counts, sums = released.cells[Count()].tolist(), released.cells[Sum("x")].tolist()
        assert list(zip(counts, sums, strict=True)) == list(expected.values())
    # Noise is drawn for the public number of rows, however many groups occur.
    assert sizes == {MOST}


def test_of_too_many_groups_those_of_the_largest_counts_keep_their_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda exact, *_: exact + 50 * (exact > 0))
    monkeypatch.setattr(open_groups, "MOST_GROUPS", 2)
    rows = (("c", 1), ("b", 0), ("a", 1), ("c", 1), ("a", 0), ("a", 0))
    domain = replace(dataset(ADD_REMOVE).domain, max_rows=len(rows))
    request = TableRequest((Levels("V"),), (SumOf("x"),), (None,))
    public = OpenPlan.of(request, replace(dataset(ADD_REMOVE), domain=domain), LOSS)
    released = release_groups(context(records(rows), public.dataset, LOSS), public)
    cap = next(one.grid.cap for one in public.measurements if one.part == Sum("x"))
    assert released.labels == (("a", "c"),)
    assert released.counts.tolist() == [53, 52]
    assert released.cells[Sum("x")].tolist() == [cap + 50, 2 * cap + 50]
