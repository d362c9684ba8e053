"""Groups of an open domain are (ε, δ)-private: every small dataset and every neighbour.

A cell with a rows is released with the value v with probability P(Z = v − a) for v ≥ τ, if a ≥ 1;
else it is not in the output. Cells are independent, so the divergence of two neighbours is that of
the cells that differ. Beyond max(τ, a, b) the ratio of two laws is constant, so the values there
are one outcome. The law is tied to the code by releases without noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import prod
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accounting.group_privacy import member_loss
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.open_domain import OpenAttribute, OpenValues
from mechanisms.model.records import TableRecords
from mechanisms.noise.discrete_laplace import discrete_laplace_probability
from mechanisms.noise.rate import Rate
from mechanisms.tables import noise
from mechanisms.tables.aggregates import CountOf
from mechanisms.tables.grouping import Levels
from mechanisms.tables.open_groups import OpenPlan, largest_groups, release_groups
from mechanisms.tables.request import TableRequest
from tests.support.contexts import context

ADD_REMOVE, REPLACE = NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE
RELATIONS = (ADD_REMOVE, REPLACE)
MOST = 3
VALUES = "abc"
LOSS = PrivacyLoss(NANO // 2, ATTO // 10)
Rows = tuple[str, ...]


def dataset(relation: NeighbouringRelation) -> Dataset:
    rows = {"rows": MOST} if relation is REPLACE else {"max_rows": MOST}
    attributes = (OpenAttribute("V"), CategoricalAttribute("C", ("0", "1")))
    return Dataset("open", relation, TableDomain(attributes, **rows))


def plan(relation: NeighbouringRelation, loss: PrivacyLoss = LOSS) -> OpenPlan:
    return OpenPlan.of_counts("V", dataset(relation), loss)


def open_values(rows: Rows) -> tuple[NDArray[np.int32], OpenValues]:
    """The codes of a column of an open attribute, and its values."""
    values = sorted(set(rows)) or [""]
    content = np.frombuffer("".join(values).encode(), np.uint8)
    codes = np.array([values.index(one) for one in rows], np.int32)
    return codes, OpenValues(content, np.cumsum([len(one) for one in values]))


def records(rows: Rows) -> TableRecords:
    codes, values = open_values(rows)
    kinds = np.array([int(one > "a") for one in rows], np.uint8)
    return TableRecords({"V": codes, "C": kinds}, {}, open_values={"V": values})


def datasets(relation: NeighbouringRelation) -> Iterator[Rows]:
    for size in [MOST] if relation is REPLACE else range(MOST + 1):
        yield from product(VALUES, repeat=size)


def neighbours(rows: Rows, relation: NeighbouringRelation) -> Iterator[Rows]:
    if relation is REPLACE:
        for place, value in product(range(len(rows)), VALUES):
            yield (*rows[:place], value, *rows[place + 1 :])
    elif len(rows) < MOST:
        yield from ((*rows, value) for value in VALUES)


def cell_law(rows: int, threshold: int, top: int, p: Fraction) -> dict[int | None, Fraction]:
    """The law of one cell: None if it is not in the output; ``top`` stands for all values ≥ it."""
    if rows == 0:
        return {None: Fraction(1)}
    law: dict[int | None, Fraction] = {
        value: discrete_laplace_probability(value - rows, p) for value in range(threshold, top)
    }
    law[top] = p ** (top - rows) / (1 + p)
    law[None] = 1 - sum(law.values())
    return law


def divergence(
    x: Mapping[str, int], y: Mapping[str, int], threshold: int, p: Fraction, growth: Fraction
) -> Fraction:
    """The hockey-stick divergence of the outputs of two datasets at e^ε = ``growth``."""
    cells = [cell for cell in VALUES if x.get(cell, 0) != y.get(cell, 0)]
    laws = []
    for counts in (x, y):
        one = []
        for cell in cells:
            top = max(threshold, x.get(cell, 0), y.get(cell, 0))
            one.append(cell_law(counts.get(cell, 0), threshold, top, p))
        laws.append(one)
    total = Fraction(0)
    for outcome in product(*({*a, *b} for a, b in zip(*laws, strict=True))):
        chances = [Fraction(1), Fraction(1)]
        for side, law in enumerate(laws):
            for one, value in zip(law, outcome, strict=True):
                chances[side] *= one.get(value, Fraction(0))
        total += max(Fraction(0), chances[0] - growth * chances[1])
    return total


def rational_exp(rate: Rate) -> Fraction:
    """e^−λ to 60 digits."""
    import mpmath

    with mpmath.workdps(70):
        return Fraction(str(mpmath.nstr(mpmath.exp(-mpmath.mpf(rate.a) / rate.b), 60)))


def worst(relation: NeighbouringRelation, threshold: int, rate: Rate, steps: int) -> Fraction:
    """The largest divergence of neighbours at e^ε = p^−steps, both ways."""
    p = rational_exp(rate)
    return max(
        divergence(Counter(a), Counter(b), threshold, p, p**-steps)
        for x in datasets(relation)
        for y in neighbours(x, relation)
        for a, b in ((x, y), (y, x))
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_worst_divergence_is_at_most_delta_and_one_lower_threshold_is_caught(
    relation: NeighbouringRelation,
) -> None:
    public = plan(relation)
    # A replaced record changes two counts, so each count has noise at half the rate.
    steps = 2 if relation is REPLACE else 1
    # The divergence below is computed at e^ε = p^−steps with p = e^−rate. So the rate times
    # ``steps`` must be the ε of the charged loss.
    assert public.rate.exponent() * steps == LOSS.epsilon()
    allowed = Fraction(LOSS.delta_atto, ATTO)
    largest = worst(relation, public.threshold, public.rate, steps)
    assert 0 < largest <= allowed
    p = rational_exp(public.rate)
    assert abs(largest - p ** (public.threshold - 1) / (1 + p)) < Fraction(1, 10**50)
    assert worst(relation, public.threshold - 1, public.rate, steps) > allowed


def test_the_rate_of_add_remove_is_too_much_for_a_replacement() -> None:
    loss = PrivacyLoss(2 * NANO, 12 * ATTO // 100)
    wrong, right = plan(ADD_REMOVE, loss), plan(REPLACE, loss)
    allowed = Fraction(loss.delta_atto, ATTO)
    # The wrong plan is made for add/remove. It ignores that a replacement changes two counts and
    # gives both the full rate.
    assert wrong.threshold == 2
    assert worst(REPLACE, wrong.threshold, wrong.rate, 1) > allowed
    assert worst(REPLACE, right.threshold, right.rate, 2) <= allowed


@pytest.mark.parametrize("most", [1, 2, 3])
def test_whole_persons_keep_to_delta_and_an_unshared_delta_is_caught(most: int) -> None:
    """With and without a person of up to ``most`` rows, beside up to two rows of others."""
    share = member_loss(LOSS, most)
    public = plan(ADD_REMOVE, share)
    p, allowed = rational_exp(public.rate), Fraction(LOSS.delta_atto, ATTO)

    def largest(threshold: int) -> Fraction:
        pairs = product(multisets(2), multisets(most))
        return max(
            divergence(a, b, threshold, p, p**-most)
            for rest, rows in pairs
            for a, b in ((rest, rest + rows), (rest + rows, rest))
        )

    assert 0 < largest(public.threshold) <= allowed
    unshared = plan(ADD_REMOVE, replace(share, delta_atto=LOSS.delta_atto))
    assert (largest(unshared.threshold) > allowed) == (most > 1)


def multisets(most: int) -> list[Counter[str]]:
    """All numbers of rows with each value, ``most`` rows at most."""
    sizes = range(most + 1)
    return [Counter(some) for n in sizes for some in combinations_with_replacement(VALUES, n)]


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("shift", [0, 3, 50])
def test_the_code_releases_occurring_groups_at_the_threshold_in_public_order(
    relation: NeighbouringRelation, shift: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same shift in place of all noise, also that of groups which do not occur."""
    sizes = set()

    def shifted(counts: Any, *_: Any) -> Any:
        sizes.add(len(counts))
        return counts + shift

    monkeypatch.setattr(noise, "discrete_laplace", shifted)
    public = plan(relation)
    for rows in datasets(relation):
        released = release_groups(context(records(rows), public.dataset, LOSS), public)
        expected = {
            value: count + shift
            for value, count in sorted(Counter(rows).items())
            if count + shift >= public.threshold
        }
        (labels,) = released.labels
        assert list(labels) == list(expected)
        assert released.counts.tolist() == list(expected.values())
    # Noise is drawn for the public number of rows, however many groups occur.
    assert sizes == {MOST}


Selected = tuple[tuple[str, int], ...]


def top_law(counts: Mapping[str, int], k: int, threshold: int, top: int, p: Fraction) -> Any:
    """The law of the k largest noisy counts that reach the threshold, with their values."""
    law: dict[Selected, Fraction] = {}
    cells = [cell_law(counts.get(cell, 0), threshold, top, p) for cell in VALUES]
    for outcome in product(*cells):
        chance = prod(
            (law[value] for law, value in zip(cells, outcome, strict=True)), start=Fraction(1)
        )
        pairs = zip(VALUES, outcome, strict=True)
        released = [(value, count) for value, count in pairs if count is not None]
        selected = tuple(sorted(released, key=lambda one: (-one[1], one[0]))[:k])
        law[selected] = law.get(selected, Fraction(0)) + chance
    return law


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_selected_values_are_private_with_their_delta(
    relation: NeighbouringRelation, k: int
) -> None:
    """Counts from ``top`` on are alike here, so this is the law of a function of the release.

    Its largest divergence is still the δ of a record that stands alone, as small counts show.
    """
    public = plan(relation)
    p, steps = rational_exp(public.rate), 2 if relation is REPLACE else 1
    allowed = Fraction(LOSS.delta_atto, ATTO)

    def largest(threshold: int) -> Fraction:
        top = threshold + 1
        laws = {
            rows: top_law(Counter(rows), k, threshold, top, p)
            for rows in datasets(relation)
            if list(rows) == sorted(rows)
        }
        return max(
            sum(max(Fraction(0), x - p**-steps * b.get(outcome, 0)) for outcome, x in a.items())
            for rows, law in laws.items()
            for one in neighbours(rows, relation)
            for a, b in ((law, laws[tuple(sorted(one))]), (laws[tuple(sorted(one))], law))
        )

    assert 0 < largest(public.threshold) <= allowed
    assert largest(public.threshold - 1) > allowed


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_code_selects_the_largest_released_counts(
    k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = plan(ADD_REMOVE)
    for drawn in product(range(public.threshold - 2, public.threshold + 1), repeat=MOST):
        added = np.array(drawn)
        monkeypatch.setattr(noise, "discrete_laplace", lambda n, *_, z=added: n + z)
        for rows in (("a", "b", "c"), ("b", "b", "c"), ("c", "c", "c"), ("b",)):
            released = release_groups(context(records(rows), public.dataset, LOSS), public)
            pairs = list(zip(released.labels[0], released.counts.tolist(), strict=True))
            selected = largest_groups(released, k)
            assert (
                list(zip(selected.labels[0], selected.counts.tolist(), strict=True))
                == sorted(pairs, key=lambda one: (-one[1], one[0]))[:k]
            )


def test_a_combination_exists_only_if_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda counts, *_: counts + 50)
    where = {"attribute": "V", "in": ["c", "a", "none"]}
    request = TableRequest((Levels("C"), Levels("V")), (CountOf(),), (None,), where)
    public = OpenPlan.of(request, dataset(ADD_REMOVE), LOSS)
    released = release_groups(context(records(("c", "a", "b")), public.dataset, LOSS), public)
    assert released.labels == (("0", "1"), ("a", "c"))
    assert released.counts.tolist() == [51, 51]
