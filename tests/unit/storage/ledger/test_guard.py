"""One guard: of whole numbers, in the UPDATE, and as the constraint behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import CheckConstraint, Connection, create_engine, literal, select, text

from accounting.account import admits
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.tables import budget_account, entry, query
from storage.ledger.accounts import LIMITS, MOVED, SUMS, AccountBalance, refusal_of
from storage.ledger.entries import NOTHING

few = st.integers(0, 4)
amounts = st.tuples(*(few for _ in MEASURES))


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as connection:
        yield connection


@given(limits=amounts, sums=amounts, charge=amounts)
@example(limits=(2, 2), sums=(1, 1), charge=(1, 1))
def test_numbers_and_sql_agree(
    connection: Connection,
    limits: tuple[int, ...],
    sums: tuple[int, ...],
    charge: tuple[int, ...],
) -> None:
    fits = all(s + c <= most for most, s, c in zip(limits, sums, charge, strict=True))
    assert admits(limits, sums, charge) is fits
    columns = [[literal(one) for one in some] for some in (limits, sums, charge)]
    assert bool(connection.execute(select(admits(*columns))).scalar_one()) is fits
    if admits(limits, sums, NOTHING):
        balance = AccountBalance(0, 0, limits, sums)
        assert (refusal_of([balance], PrivacyLoss(*charge)) is None) is fits


@given(limits=amounts, sums=amounts)
def test_the_constraint_is_the_guard_of_no_charge(
    connection: Connection, limits: tuple[int, ...], sums: tuple[int, ...]
) -> None:
    columns = [column.name for column in (*LIMITS, *SUMS)]
    row = ", ".join(
        f"{value} AS {name}" for name, value in zip(columns, limits + sums, strict=True)
    )
    checks = [
        str(one.sqltext)
        for one in budget_account.constraints
        if isinstance(one, CheckConstraint) and "charged_" in str(one.sqltext)
    ]
    assert len(checks) == len(MEASURES)
    holds = text(f"SELECT {' AND '.join(f'({check})' for check in checks)} FROM (SELECT {row})")
    assert bool(connection.execute(holds).scalar_one()) is admits(limits, sums, NOTHING)


def test_every_measure_has_its_columns() -> None:
    assert [measure.column for measure in MEASURES] == ["eps_n", "delta_a"]
    assert all(measure.column in query.c for measure in MEASURES)
    assert all(name in entry.c for name in MOVED)
    assert len(PrivacyLoss(1, 2).amounts) == len(MEASURES)
    assert PrivacyLoss(1, 2).as_dict().keys() == {measure.name for measure in MEASURES}
