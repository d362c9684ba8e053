"""Tables of persons are private for whole persons: every small upload, in every order of its rows.

Uploads are read as the service reads them: rows are chosen with a key, then counted. Neighbours
differ in one whole person, and rows may stand in another order, which is no part of a dataset. The
largest log ratio of two releases is Σ λ_i·‖v_i(x) − v_i(y)‖₁, as in ``test_tables``, and is
compared with the charge of a query in rationals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from math import tanh
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from accounting.group_privacy import member_loss
from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.records import TableRecords
from mechanisms.tables.aggregates import CountOf, MeanOf, SumOf
from mechanisms.tables.grouping import Levels
from mechanisms.tables.noise import LaplaceNoise
from mechanisms.tables.persons import Persons, PersonsOf
from mechanisms.tables.plan import TablePlan
from mechanisms.tables.request import MeasuredTotals, TableRequest
from mechanisms.tables.tabulate import release
from storage.ingest.batches import Batch, Numbering
from storage.ingest.persons import PersonCollector, Truncation
from tests.evidence.certification.test_tables import Silent, Vector, described, rates, vectors
from tests.support.contexts import context

LOSS = PrivacyLoss(NANO)
KEY = bytes(range(32))
#: A row: the value of attribute A, a number, and the bin of this number.
Row = tuple[int, float, int]
ROWS: tuple[Row, ...] = ((0, -2.0, 0), (0, 6.0, 1), (1, -2.0, 0), (1, 6.0, 1))
#: ``File`` is an upload: the rows of each person, in some order. ``Choice``: the rows of each
#: person that the service keeps.
File = tuple[tuple[str, Row], ...]
Choice = tuple[tuple[Row, ...], ...]
Select = Callable[[File, int], Choice]
REQUESTS = {
    "persons": described([Levels("A"), Levels("x")], [PersonsOf()]),
    "one cell": described([], [PersonsOf()]),
    "totals": described(
        [Levels("A"), Levels("x")],
        [PersonsOf(), CountOf()],
        totals=MeasuredTotals((("A",), ()), Fraction(1, 2)),
        consistent=True,
    ),
    "where": described(
        [Levels("A")],
        [CountOf(), PersonsOf(), MeanOf("x"), SumOf("x")],
        shares=(None, Fraction(1, 10), None, None),
        where={"attribute": "x", "from": 0},
    ),
}


def dataset(most: int) -> Dataset:
    attributes = (
        CategoricalAttribute("A", ("0", "1")),
        NumericAttribute("x", -2.0, 6.0, (-2.0, 0.5, 6.0)),
    )
    domain = TableDomain(attributes, max_rows=40, person="id")
    return Dataset("visits", NeighbouringRelation.ADD_REMOVE, domain, most)


def chosen(file: File, most: int) -> Choice:
    """What the service keeps of a file."""
    collector = PersonCollector("id", Truncation(most, KEY), 10**6)
    ids = pa.array([id for id, _ in file], pa.string()).dictionary_encode()
    refusals = list(collector.add(Batch({"id": ids}, len(file), Numbering(1))))
    assert refusals == []
    columns = zip(*(row for _, row in file), strict=True) if file else ([], [], [])
    selection = collector.select([np.array(column, np.float64) for column in columns])
    of: list[list[Row]] = [[] for _ in range(int(selection.persons.max(initial=-1)) + 1)]
    for place, person in zip(selection.rows, selection.persons, strict=True):
        of[person].append(file[place][1])
    return tuple(tuple(sorted(rows)) for rows in of)


def in_order_of_the_file(file: File, most: int) -> Choice:
    """Danger: keeps the first rows of each person."""
    return _of_ranks(file, most, range(len(file)))


def by_place(file: File, most: int) -> Choice:
    """Danger: the hash of a row follows from its place, which the rows of others move."""
    return _of_ranks(file, most, [Random(place).random() for place in range(len(file))])


def in_each_cell(file: File, most: int) -> Choice:
    """Danger: keeps rows of a person in each cell, not in all together."""
    some: Counter[tuple[str, Row]] = Counter()
    rows = [(one, some.update([one])) for one in sorted(file) if some[one] < most]
    return _by_person(tuple(one for one, _ in rows))


def _of_ranks(file: File, most: int, ranks: Sequence[float]) -> Choice:
    places = sorted(range(len(file)), key=lambda place: ranks[place])
    some: Counter[str] = Counter()
    rows = []
    for place in places:
        some[file[place][0]] += 1
        if some[file[place][0]] <= most:
            rows.append(file[place])
    return _by_person(tuple(rows))


def _by_person(file: File) -> Choice:
    ids = dict.fromkeys(id for id, _ in sorted(file))
    return tuple(tuple(sorted(row for id, row in file if id == one)) for one in ids)


def multisets(most: int) -> list[tuple[Row, ...]]:
    return [rows for size in range(most + 1) for rows in combinations_with_replacement(ROWS, size)]


def orders(rows: Sequence[Sequence[Row]]) -> list[File]:
    """The rows of the persons in three orders."""
    file = tuple((f"p{i}", row) for i, some in enumerate(rows) for row in some)
    return [file, file[::-1], tuple(sorted(file, key=lambda one: one[1]))]


class Certified:
    """The vectors of one request at one c, and the largest loss between neighbours."""

    def __init__(self, request: TableRequest, most: int) -> None:
        self.plan = TablePlan(request, dataset(most), member_loss(LOSS, most))
        self.most = most
        self._vectors: dict[Choice, Vector] = {}

    def vector(self, choice: Choice) -> Vector:
        choice = tuple(sorted(choice))
        if choice not in self._vectors:
            within = context(records(choice), self.plan.dataset, self.plan.loss)
            self._vectors[choice] = vectors(self.plan, release(within, self.plan))
        return self._vectors[choice]

    def loss(self, neighbours: Iterator[tuple[File, File]], select: Select) -> Fraction:
        """The largest log ratio over all these neighbours."""
        at = rates(self.plan)
        choice = cache(lambda file: self.vector(select(file, self.most)))
        return max(
            Fraction(
                sum(
                    rate * sum(abs(a - b) for a, b in zip(p, q, strict=True))
                    for rate, p, q in zip(at, choice(x), choice(y), strict=True)
                )
            )
            for x, y in neighbours
        )


def records(choice: Choice) -> TableRecords:
    rows = [row for some in choice for row in some]
    a, x, bins = zip(*rows, strict=True) if rows else ((), (), ())
    codes = {"A": np.array(a, np.uint8), "x": np.array(bins, np.uint8)}
    persons = np.repeat(np.arange(len(choice), dtype=np.int32), [len(some) for some in choice])
    return TableRecords(codes, {"x": np.array(x, np.float64)}, persons=persons)


def neighbours(one: int, others: int, persons: int = 2) -> Iterator[tuple[File, File]]:
    """Uploads with and without the first person, of up to ``one`` rows; and any two orders.

    ``others``: the most rows of each of the other persons.
    """
    for rest in product(multisets(others), repeat=persons - 1):
        without = orders([(), *rest])
        yield from ((without[0], file) for file in without[1:])
        for rows in multisets(one):
            yield from product(orders([rows, *rest]), without[:2])


@cache
def certified(name: str, most: int) -> Certified:
    return Certified(REQUESTS[name], most)


@pytest.fixture(autouse=True)
def _without_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LaplaceNoise, "add", Silent.add)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_whole_person_loses_at_most_the_charge(most: int) -> None:
    choice = cache(chosen)
    for name in REQUESTS:
        loss = certified(name, most).loss(neighbours(4, 1), choice)
        assert loss <= 1, name
        if name in ("persons", "one cell"):
            assert loss > Fraction(99, 100), "the bound is attained: no loss is paid in vain"


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_whole_person_among_two_others_loses_at_most_the_charge(most: int) -> None:
    choice = cache(chosen)
    for name in REQUESTS:
        assert certified(name, most).loss(neighbours(5, 1, persons=3), choice) <= 1, name


@pytest.mark.parametrize("select", [in_order_of_the_file, by_place, in_each_cell])
def test_rows_that_others_or_their_order_choose_are_rejected(select: Select) -> None:
    assert certified("persons", 1).loss(neighbours(2, 2), chosen) <= 1
    assert certified("persons", 1).loss(neighbours(2, 2), select) > 1


def test_totals_that_add_up_the_cells_are_rejected() -> None:
    """A person is in the sum of the cells as often as in cells, and not once."""
    certain = certified("totals", 2)
    at = [
        rate if one.part == Persons() else Fraction(0)
        for one, rate in zip(certain.plan.measurements, rates(certain.plan), strict=True)
    ]

    def added(vector: Vector) -> list[tuple[int, ...]]:
        (cells,) = (
            numbers
            for one, numbers in zip(certain.plan.measurements, vector, strict=True)
            if one.part == Persons() and one.margin is None
        )
        of = [
            (one.margin == (), numbers)
            for one, numbers in zip(certain.plan.measurements, vector, strict=True)
        ]
        return [(sum(cells),) if is_total else numbers for is_total, numbers in of]

    both, nobody = certain.vector(((ROWS[0], ROWS[3]),)), certain.vector(())

    def loss(one: Sequence[tuple[int, ...]], other: Sequence[tuple[int, ...]]) -> Fraction:
        changes = (
            sum(abs(a - b) for a, b in zip(p, q, strict=True))
            for p, q in zip(one, other, strict=True)
        )
        return sum((rate * change for rate, change in zip(at, changes, strict=True)), Fraction(0))

    share = Fraction(1, 2)  # Counts of persons have half of the loss; counts of rows have the rest.
    assert loss(both, nobody) <= share
    assert loss(added(both), added(nobody)) > share


def test_noise_of_persons_follows_the_cells_that_a_person_can_be_in() -> None:
    for most, scale in ((1, 1), (2, 2), (3, 3), (9, 4)):
        plan = TablePlan(REQUESTS["persons"], dataset(most), member_loss(LOSS, most))
        assert plan.measurements[0].noise.scale == pytest.approx(scale, rel=1e-6)
        total = TablePlan(REQUESTS["one cell"], dataset(most), member_loss(LOSS, most))
        assert total.measurements[0].noise.scale == pytest.approx(1, rel=1e-6)


def test_the_charge_in_rho_covers_a_whole_person() -> None:
    """By the exact law of the noise on all numbers that a person moves, each by 1."""
    for most, name in product((1, 2, 3, 9), ("persons", "one cell")):
        certain = Certified(REQUESTS[name], most)
        (one,), (step,) = certain.plan.measurements, certain.plan.steps()
        declared = step.for_group(most).total_rho()
        changed = min(most, certain.plan.cells)
        (rate,) = map(float, rates(certain.plan))
        exact = changed * rate * tanh(rate / 2)
        assert exact <= declared / 10**15 <= exact * 1.001
        assert one.noise.distinct_rho_bound(certain.plan.cells).femto(most) == declared
