"""Conditions are total: every accepted one has the truth value of its literal reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.privacy_loss import NANO
from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Inline
from mechanisms.model.records import TableRecords
from mechanisms.statistics.count import Count
from mechanisms.statistics.predicate import (
    MAX_DEPTH,
    condition,
    condition_bytes,
    condition_work,
    fits,
    holds,
    level_attributes,
    part_work,
)
from mechanisms.statistics.tables import BLOCK
from tests.support.contexts import context
from tests.unit.mechanisms.statistics.worlds import (
    RELATIONS,
    REPLACE,
    table,
    table_dataset,
)

LEVELS = ("red", "green", "?")
LOWER, UPPER, MISSING = -2.0, 8.0, "none"
DATASET = Dataset(
    "rows",
    NeighbouringRelation.ADD_REMOVE,
    TableDomain(
        (
            CategoricalAttribute("colour", LEVELS),
            NumericAttribute("size", LOWER, UPPER, (LOWER, 3.0, UPPER), missing=MISSING),
        ),
        max_rows=100,
    ),
)
Row = tuple[str, float | None]

numbers = st.one_of(
    st.integers(-3, 9),
    st.floats(-3, 9),
    st.sampled_from([2**59, -(2**59), 5e-324, -0.0, 1e17]),
)
ranges = st.one_of(
    st.builds(lambda a: {"from": a}, numbers),
    st.builds(lambda a: {"to": a}, numbers),
    st.tuples(numbers, numbers)
    .filter(lambda ends: ends[0] < ends[1])
    .map(lambda ends: {"from": ends[0], "to": ends[1]}),
)
leaves = st.one_of(
    st.lists(st.sampled_from(LEVELS)).map(lambda v: {"attribute": "colour", "in": v}),
    st.lists(st.one_of(numbers, st.just(MISSING))).map(lambda v: {"attribute": "size", "in": v}),
    ranges.map(lambda ends: {"attribute": "size", **ends}),
)


def deeper(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        below.map(lambda c: {"not": c}),
        st.lists(below, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(below, max_size=3).map(lambda parts: {"any": parts}),
    )


rows = st.lists(
    st.tuples(st.sampled_from(LEVELS), st.none() | st.integers(-2, 8) | st.floats(-2, 8)),
    max_size=8,
)


def meets(body: dict[str, Any], row: Row) -> bool:
    if "not" in body:
        return not meets(body["not"], row)
    if "all" in body:
        return all(meets(part, row) for part in body["all"])
    if "any" in body:
        return any(meets(part, row) for part in body["any"])
    colour, size = row
    if body["attribute"] == "colour":
        return colour in body["in"]
    if size is None:
        return MISSING in body.get("in", ())
    if "in" in body:
        return any(size == v for v in body["in"] if v != MISSING)
    return body.get("from", -np.inf) <= size < body.get("to", np.inf)


def stored(listed: list[Row]) -> TableRecords:
    middle = (LOWER + UPPER) / 2
    sizes = np.array([middle if size is None else size for _, size in listed], np.float64)
    bins = [2 if size is None else int(size >= 3) for _, size in listed]
    codes = {
        "colour": np.array([LEVELS.index(colour) for colour, _ in listed], np.uint8),
        "size": np.array(bins, np.uint8),
    }
    return TableRecords(codes, {"size": sizes}, {"size": np.sort(sizes)})


def depth(body: dict[str, Any]) -> int:
    parts = [body["not"]] if "not" in body else body.get("all", body.get("any", []))
    return 1 + max(map(depth, parts), default=0)


@settings(deadline=None, max_examples=300)
@given(body=st.recursive(leaves, deeper, max_leaves=12), listed=rows)
def test_every_condition_has_its_plain_truth_value(body: dict[str, Any], listed: list[Row]) -> None:
    if depth(body) > MAX_DEPTH:
        return
    where = condition(body)
    fits(where, DATASET)
    truth = holds(where, stored(listed), DATASET)(slice(None))
    assert truth.tolist() == [meets(body, row) for row in listed]


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_count_of_a_condition_moves_by_its_sensitivity(relation: NeighbouringRelation) -> None:
    """A row comes, or becomes another one: the count moves by GS = 1 at most, and sometimes so."""
    inside, far = {"attribute": "x", "from": 20, "to": 60}, {"attribute": "x", "from": 90}
    question = Count(condition({"any": [inside, {"not": {"not": far}}]}))
    dataset, values = table_dataset(relation, 3), (10.0, 30.0, 95.0)
    plan = question.plan(dataset, NANO)

    def count(rows: tuple[float, ...]) -> int:
        return question.measure(context(table(rows), dataset), plan).value

    before = [rows for length in range(1, 4) for rows in product(values, repeat=length)]
    stays = 1 if relation is REPLACE else 0
    moves = {
        abs(count(rows) - count((*rows[stays:], value))) for rows in before for value in values
    }
    assert moves == {0, 1}
    assert plan.cap == max(moves)


VISITS = DateAttribute("seen", "2023-12-15", "2024-12-31", "month", missing="never")
VISITED = Dataset("visits", NeighbouringRelation.ADD_REMOVE, TableDomain((VISITS,), max_rows=1000))


@given(
    first=st.dates(date(2023, 11, 1), date(2025, 2, 1)),
    length=st.integers(1, 500),
    listed=st.lists(st.none() | st.integers(0, 382), max_size=8),
)
def test_dates_are_in_ranges_of_days_and_in_bins(
    first: date, length: int, listed: list[int | None]
) -> None:
    days = np.array([0 if day is None else day for day in listed], np.int32)
    codes = np.array([13 if day is None else VISITS.codes[day] for day in listed], np.uint8)
    records = TableRecords({"seen": codes}, {}, days={"seen": days})
    dates = [None if day is None else date(2023, 12, 15) + timedelta(day) for day in listed]
    last = first + timedelta(length)
    for body, meet in (
        ({"from": str(first)}, [one is not None and one >= first for one in dates]),
        (
            {"from": str(first), "to": str(last)},
            [one is not None and first <= one < last for one in dates],
        ),
        ({"in": ["2024-02", "never"]}, [one is None or str(one)[:7] == "2024-02" for one in dates]),
    ):
        where = condition({"attribute": "seen", **body})
        fits(where, VISITED)
        assert holds(where, records, VISITED)(slice(None)).tolist() == meet


def test_ends_are_of_the_kind_of_the_attribute() -> None:
    for body in (
        {"from": 1},
        {"from": "2024-13-01"},
        {"from": "2024-02-01", "to": 3},
        {"in": ["2024"]},
    ):
        with pytest.raises((ValueError, UnsupportedQuery)):
            fits(condition({"attribute": "seen", **body}), VISITED)
    with pytest.raises(UnsupportedQuery):
        fits(condition({"attribute": "size", "from": "2024-01-01"}), DATASET)
    with pytest.raises(ValueError, match="from is below to"):
        condition({"attribute": "seen", "from": "2024-01-02", "to": "2024-01-02"})


class Watched(Mapping[str, int]):
    """The codes of levels; counts how often one is looked up."""

    def __init__(self, levels: Sequence[str]) -> None:
        self.of = {level: code for code, level in enumerate(levels)}
        self.looks = 0

    def __getitem__(self, level: str) -> int:
        self.looks += 1
        return self.of[level]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("a condition never walks over all levels")

    def __len__(self) -> int:
        return len(self.of)


LEAF = {"attribute": "colour", "in": ["red", "?"]}
MANY_LEAVES = {"any": [LEAF, {"not": LEAF}, {"all": [LEAF]}]}


@pytest.mark.parametrize("blocks", [0, 1, 5])
def test_lists_are_read_once_however_many_rows_there_are(blocks: int) -> None:
    """Neighbours differ in their rows, and a list of levels may be long."""
    colour = CategoricalAttribute("colour", LEVELS)
    watched = vars(colour)["places"] = Watched(LEVELS)
    dataset = replace(DATASET, domain=TableDomain((colour,), max_rows=100))
    meets = holds(MANY_LEAVES, stored([("red", 1.0), ("green", 2.0)]), dataset)
    for _ in range(blocks):
        assert meets(slice(0, 2)).tolist() == [True, True]
    assert watched.looks == 6


def test_parts_values_and_levels_of_every_leaf_are_counted_in_work_and_bytes() -> None:
    stated = part_work(MANY_LEAVES, DATASET)
    assert stated["parts of conditions"].units == len(list(every_part(MANY_LEAVES)))
    assert stated["listed values"].units == 6
    assert condition_bytes(MANY_LEAVES, DATASET) == 3 * len(LEVELS)
    assert condition_work(MANY_LEAVES, 10, DATASET).items() > stated.items()
    numbers = {"attribute": "size", "from": 1}
    assert part_work(numbers, DATASET)["listed values"].units == 0
    assert (condition_bytes(None, DATASET), condition_work(None, 10, DATASET)) == (0, {})
    # In the stated work, a condition that lists levels counts as several parts if its attribute has
    # many levels.
    wide = CategoricalAttribute("colour", tuple(map(str, range(1 << 14))))
    dataset = replace(DATASET, domain=TableDomain((wide,), max_rows=100))
    one = {"attribute": "colour", "in": ["1"]}
    assert part_work({"any": [one] * 5}, dataset)["parts of conditions"].units == 6 + 5 * 4


def every_part(where: Any) -> Iterator[Any]:
    yield where
    for part in [*where.get("all", []), *where.get("any", []), *filter(None, [where.get("not")])]:
        yield from every_part(part)


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_parts_of_a_count_follow_from_the_public_bound(rows: int) -> None:
    class Parts(Inline):
        def map(self, kernel: Any, parts: Any) -> list[Any]:
            lengths.append(len(list(parts)))
            return super().map(kernel, parts)

    lengths: list[int] = []
    dataset = replace(DATASET, domain=replace(DATASET.domain, max_rows=3 * BLOCK))
    count, records = Count(LEAF), stored([("red", 1.0)] * rows)
    plan = count.plan(dataset, NANO)
    assert count.measure(context(records, dataset, executor=Parts()), plan).value == rows
    assert lengths == [3]


BINNED = Dataset(
    "binned",
    NeighbouringRelation.ADD_REMOVE,
    TableDomain(
        (
            NumericAttribute("size", -2.0, 8.0, (-2.0, 3.0, 8.0), missing="none"),
            DateAttribute("day", "2024-01-20", "2024-03-10", "month", missing="none"),
        ),
        max_rows=100,
    ),
)


@pytest.mark.parametrize("name", ["size", "day"])
def test_levels_decide_a_range_if_no_bin_has_rows_on_both_sides(name: str) -> None:
    """Every range of whole numbers or of days, over rows at all of them."""
    attribute = BINNED.domain.attribute(name)  # type: ignore[union-attr]
    if name == "size":
        ends: list[Any] = list(range(-4, 11))
        values = np.arange(-2.0, 8.5, 0.5)
        codes = np.where(values >= 3, 1, 0)
        rows = TableRecords({name: codes.astype(np.uint8)}, {name: values})
    else:
        ends = [str(date(2024, 1, 18) + timedelta(day)) for day in range(55)]
        days = np.arange(len(attribute.codes), dtype=np.int32)
        rows = TableRecords({name: attribute.codes.astype(np.uint8)}, {}, days={name: days})
    decided = 0
    for low, high in product([None, *ends], repeat=2):
        where = {"attribute": name, **({} if low is None else {"from": low})}
        where |= {} if high is None else {"to": high}
        if len(where) == 1 or (None not in (low, high) and not low < high):
            continue
        met = holds(where, rows, BINNED)(slice(None))
        parts = (met[rows.codes[name] == code] for code in range(len(attribute.levels) - 1))
        is_same = all(part.all() or not part.any() for part in parts)
        names = level_attributes(where, BINNED)
        assert names in (None, {name})
        assert is_same or names is None, where
        decided += names is not None
    assert decided >= 9
