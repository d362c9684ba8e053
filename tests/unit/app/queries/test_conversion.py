"""From the charge to the loss of a mechanism: exact sums of steps, and sound shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.composition import total
from accounting.group_privacy import group_loss
from accounting.privacy_loss import ATTO, NANO, PrivacyLoss, parse_units
from app.queries.parts.conversion import (
    as_add_remove,
    charge_for,
    charge_for_add_remove,
    mechanism_loss,
)
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery


def table(relation: NeighbouringRelation, people: int = 1, rows: int | None = 10) -> Dataset:
    replaced = relation is NeighbouringRelation.REPLACE
    domain = TableDomain(
        attributes=(CategoricalAttribute("a", ("x", "y")),),
        class_attribute=None,
        rows=rows if replaced else None,
        max_rows=None if replaced else 10,
    )
    return Dataset("t", relation, domain, people)


charges = st.builds(PrivacyLoss, st.integers(10**6, 10 * NANO), st.integers(0, 10**15))
relations = st.sampled_from([NeighbouringRelation.ADD_REMOVE, NeighbouringRelation.REPLACE])
people = st.integers(1, 6)


@given(charge=charges, relation=relations, people=people)
def test_steps_add_up_to_the_charge_and_the_share_holds_it(
    charge: PrivacyLoss, relation: NeighbouringRelation, people: int
) -> None:
    dataset = table(relation, people)
    try:
        native = as_add_remove(dataset, charge)
    except UnsupportedQuery:
        # Only a δ that is too small is refused here. With δ = 0 the same ε is converted.
        assert charge.delta_atto
        charge = PrivacyLoss(charge.epsilon_nano)
        native = as_add_remove(dataset, charge)
    assert total(native.steps) + native.loss == charge
    # The records of one person make one change each, and two where records are replaced, a removal
    # and an addition.
    changes = people * (2 if relation is NeighbouringRelation.REPLACE else 1)
    assert group_loss(native.loss, changes).fits(charge)
    assert native.dataset.neighbouring is NeighbouringRelation.ADD_REMOVE
    assert len(native.steps) == (people > 1) + (relation is NeighbouringRelation.REPLACE)


@given(
    loss=st.builds(PrivacyLoss, st.integers(1, NANO), st.integers(0, 10**9)),
    relation=relations,
    people=people,
)
def test_the_least_charge_leaves_the_loss(
    loss: PrivacyLoss, relation: NeighbouringRelation, people: int
) -> None:
    dataset = table(relation, people)
    charge = charge_for_add_remove(dataset, loss)
    assert loss.fits(as_add_remove(dataset, charge).loss)
    assert loss.fits(mechanism_loss(dataset, charge_for(dataset, loss))[0])


def test_a_replacement_runs_at_half_of_epsilon_and_its_part_of_delta() -> None:
    native = as_add_remove(table(NeighbouringRelation.REPLACE), PrivacyLoss.parse("2", "0.000001"))
    # At ε = 2 the mechanism gets δ / (1 + e^(ε/2)) = 10⁻⁶ / 3.718281828459045…
    assert native.loss == PrivacyLoss(NANO, 268_941_421_369)
    assert native.dataset.domain.max_rows == 10  # type: ignore[union-attr]
    assert "removal and an addition" in native.steps[0].what


def test_what_leaves_nothing_is_refused_with_what_would_do() -> None:
    many = table(NeighbouringRelation.ADD_REMOVE, 1000)
    with pytest.raises(UnsupportedQuery, match="epsilon is too small"):
        mechanism_loss(many, PrivacyLoss(999))
    replaced = table(NeighbouringRelation.REPLACE)
    with pytest.raises(UnsupportedQuery, match="too small to be halved"):
        as_add_remove(replaced, PrivacyLoss(1))


def refusal(dataset: Dataset, charge: PrivacyLoss) -> str | None:
    """The δ that the refusal suggests instead of the one of the charge."""
    try:
        as_add_remove(dataset, charge)
    except UnsupportedQuery as refused:
        return str(refused.supported["delta"])
    return None


@given(epsilon=st.integers(10**4, 40 * NANO), relation=relations, people=people)
def test_a_delta_that_is_lost_is_refused_with_the_least_that_is_not(
    epsilon: int, relation: NeighbouringRelation, people: int
) -> None:
    dataset, delta = table(relation, people), 1
    # The charge is divided among the records of a person, and then halved for a replacement. Each
    # of these two steps may refuse a δ that is too small and suggest a larger one.
    while least := refusal(dataset, PrivacyLoss(epsilon, delta)):
        assert parse_units(least.removeprefix("at least "), 18) > delta
        delta = parse_units(least.removeprefix("at least "), 18)
    assert as_add_remove(dataset, PrivacyLoss(epsilon, delta)).loss.delta_atto
    if delta > 1:
        assert refusal(dataset, PrivacyLoss(epsilon, delta - 1))


def test_where_no_delta_is_large_enough() -> None:
    many = table(NeighbouringRelation.ADD_REMOVE, 1000)
    with pytest.raises(UnsupportedQuery, match="delta is too small") as refused:
        mechanism_loss(many, PrivacyLoss(100 * NANO, ATTO - 1))
    assert refused.value.supported == {"delta": "none at this epsilon"}


def test_only_tables_are_converted_and_only_with_their_rows_known() -> None:
    graph = Dataset("g", NeighbouringRelation.EDGE, GraphDomain(3, 2), 1)
    with pytest.raises(UnsupportedQuery, match="for tables"):
        as_add_remove(graph, PrivacyLoss(NANO))
    unknown = table(NeighbouringRelation.REPLACE, rows=None)
    with pytest.raises(UnsupportedQuery, match="rows is not fixed"):
        as_add_remove(unknown, PrivacyLoss(NANO))
