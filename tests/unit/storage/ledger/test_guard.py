"""One guard: of whole numbers, in the UPDATE, and as the constraint behind it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import CheckConstraint, Connection, create_engine, literal, select, text

from accounting.account import LARGEST_SUM, admits
from accounting.measures import MEASURES
from accounting.privacy_loss import PrivacyLoss
from storage.database.tables import budget_account, entry, query
from storage.ledger.accounts import LIMITS, MOVED_LIMIT, SUMS, AccountBalance, refusal_of
from storage.ledger.entries import NOTHING

few = st.integers(0, 4)
amounts = st.tuples(*(few for _ in MEASURES))
limits_of = st.tuples(*(few for _ in MEASURES), st.integers(0, 1))


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    with create_engine("sqlite://").connect() as connection:
        yield connection


def fits(limits: tuple[int, ...], sums: tuple[int, ...], charge: tuple[int, ...]) -> bool:
    """The guard as it is published: δ, and either ε or ρ; ρ alone only where it is allowed."""
    most_e, most_d, most_r, _, gaussian = limits
    e, d, r, u = (a + b for a, b in zip(sums, charge, strict=True))
    if charge[3] and not gaussian:
        return False
    return d <= most_d and ((u == 0 and e <= most_e) or (most_r > 0 and r <= most_r))


@given(limits=limits_of, sums=amounts, charge=amounts)
@example(limits=(2, 2, 0, 0, 0), sums=(1, 1, 0, 0), charge=(1, 1, 0, 0))
@example(limits=(2, 2, 3, 1, 0), sums=(2, 1, 1, 0), charge=(1, 1, 2, 0))  # charge fits by ρ alone
@example(limits=(2, 2, 3, 1, 0), sums=(1, 1, 3, 0), charge=(1, 1, 1, 0))  # charge fits by ε alone
# A charge without a finite ε is refused, because the limit does not permit such releases.
@example(limits=(2, 2, 3, 1, 0), sums=(0, 0, 0, 0), charge=(0, 0, 1, 1))
# Two releases without a finite ε in one charge fit if the limit permits such releases.
@example(limits=(2, 2, 3, 1, 1), sums=(0, 0, 0, 0), charge=(0, 0, 1, 2))
def test_numbers_and_sql_agree(
    connection: Connection,
    limits: tuple[int, ...],
    sums: tuple[int, ...],
    charge: tuple[int, ...],
) -> None:
    expected = fits(limits, sums, charge)
    assert admits(limits, sums, charge) is expected
    columns = [[literal(one) for one in some] for some in (limits, sums, charge)]
    assert bool(connection.execute(select(admits(*columns))).scalar_one()) is expected
    if admits(limits, sums, NOTHING):
        balance = AccountBalance(0, 0, None, limits, sums)
        assert (refusal_of([balance], PrivacyLoss(*charge), at_us=1) is None) is expected


@given(limits=limits_of, sums=amounts, released=amounts)
def test_what_is_given_back_keeps_within_the_guard(
    limits: tuple[int, ...], sums: tuple[int, ...], released: tuple[int, ...]
) -> None:
    """(G) describes a down-set, so a release is never refused."""
    more = tuple(a + b for a, b in zip(sums, released, strict=True))
    assert admits(limits, sums, NOTHING) or not admits(limits, more, NOTHING)


@given(old=limits_of, new=limits_of, sums=amounts)
def test_raised_limits_admit_all_that_was_admitted(
    old: tuple[int, ...], new: tuple[int, ...], sums: tuple[int, ...]
) -> None:
    raised = tuple(map(max, old, new))
    assert admits(raised, sums, NOTHING) or not admits(old, sums, NOTHING)


def test_sums_of_epsilon_stay_below_64_bits_where_rho_admits() -> None:
    """Known to fail: sums that SQLite turns into floats."""
    limits, tiny = (10**12, 0, 10**17, 10**15, 0), (1, 0, 1, 0)
    assert admits(limits, (LARGEST_SUM - 1, 0, 5, 0), tiny)
    assert not admits(limits, (LARGEST_SUM, 0, 5, 0), tiny)


@given(limits=limits_of, sums=amounts)
def test_the_constraint_is_the_guard_of_no_charge(
    connection: Connection, limits: tuple[int, ...], sums: tuple[int, ...]
) -> None:
    columns = [column.name for column in (*LIMITS, *SUMS)]
    row = ", ".join(
        f"{value} AS {name}" for name, value in zip(columns, limits + sums, strict=True)
    )
    (check,) = [
        str(one.sqltext)
        for one in budget_account.constraints
        if isinstance(one, CheckConstraint) and "charged_" in str(one.sqltext)
    ]
    holds = text(f"SELECT {check} FROM (SELECT {row})")
    assert bool(connection.execute(holds).scalar_one()) is admits(limits, sums, NOTHING)


def test_every_measure_has_its_columns() -> None:
    columns = [measure.column for measure in MEASURES]
    assert columns == ["eps_n", "delta_a", "rho_f", "unpriced"]
    assert all(column in query.c for column in columns)
    assert all(name in entry.c for name in MOVED_LIMIT)
    assert len(PrivacyLoss(1, 2).amounts) == len(MEASURES)
