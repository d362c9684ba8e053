"""Conditions on one row, in a closed grammar that is checked before any record is read.

    {"attribute": a, "in": [v, …]}       {"attribute": a, "from": x, "to": y}      from ≤ a < to
    {"all": [c, …]}    {"any": [c, …]}    {"not": c}

``in`` lists levels of a categorical attribute, bins of dates or numbers of a numeric attribute, and
the text of a missing cell in any; one of ``from`` and ``to`` may be absent. They are numbers, or
dates such as "2024-12-31". A missing number or date is in no range.
Every condition has a truth value on every row, so no record can cause a failure.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.dates import DateAttribute, day_number
from mechanisms.model.domains import Attribute, CategoricalAttribute, Dataset, NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.open_domain import MOST_LISTED, OpenAttribute, OpenValues
from mechanisms.model.records import TableRecords
from mechanisms.model.table_candidates import attribute_named
from mechanisms.model.work import NOTHING, Work, together, work

MAX_DEPTH = 8
#: The most list entries, ends of ranges and nested conditions that a condition may have in total.
MAX_VALUES = 1000
#: One step of a binary search takes as long as this many comparisons, because the processor cannot
#: predict its branches.
SEARCH_STEP = 8

Truths = NDArray[np.bool_]
_GROUPS = {"all", "any"}


#: A condition on one row, as a JSON object that the function ``condition`` has checked. The
#: function ``holds`` evaluates it.
Condition = Mapping[str, Any]


def condition(body: Any) -> Condition:
    """The condition that a JSON value describes.

    It is checked level by level, so that no depth exhausts the stack. Raises: ValueError that names
    the violated rule, never the value.
    """
    level, values = [body], 0
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        values += len(level)
        for node in level:
            children, listed = _children(node)
            values += listed
            below += children
        if values + len(below) > MAX_VALUES:
            raise ValueError(f"a condition has at most {MAX_VALUES} values and parts")
        if not below:
            checked: Condition = body
            return checked
        level = below
    raise ValueError(f"conditions are nested at most {MAX_DEPTH} deep")


def is_always(where: Condition) -> bool:
    """True for the empty condition, which every row meets, so that no row needs to be read."""
    return not where.get("all", True)


def fits(where: Condition, dataset: Dataset) -> None:
    """Raise UnsupportedQuery unless the table has all attributes and values of the condition."""
    for body in _parts(where):
        if "attribute" in body:
            _check_leaf(body, attribute_named(dataset, body["attribute"]))


def level_attributes(where: Condition, dataset: Dataset) -> set[str] | None:
    """The attributes of a condition that levels decide; None if numbers or dates inside bins do.

    The condition must fit.
    """
    names: set[str] = set()
    for body in _parts(where):
        if "attribute" in body:
            attribute = attribute_named(dataset, body["attribute"])
            if not _is_of_levels(body, attribute):
                return None
            names.add(attribute.name)
    return names


def _is_of_levels(leaf: Mapping[str, Any], attribute: Attribute) -> bool:
    """True if either all rows of a level meet the leaf or none does: its ends lie between bins."""
    if "in" in leaf:
        return isinstance(attribute, CategoricalAttribute | DateAttribute)
    ends = [leaf[end] for end in ("from", "to") if end in leaf]
    if isinstance(attribute, DateAttribute):
        days, last = map(attribute.offset, ends), len(attribute.codes)
        return all(day <= 0 or day >= last or day in attribute.starts for day in days)
    assert isinstance(attribute, NumericAttribute)
    # The last bin of a numeric attribute includes its upper edge. A range that begins or ends at
    # this edge divides the bin, so counts by bin cannot answer a condition on the range.
    *starts, upper = attribute.edges
    return all(end <= starts[0] or end > upper or end in starts for end in ends)


def comparisons(where: Condition, dataset: Dataset) -> int:
    """The comparisons that a condition takes for one row, at least 1."""
    return sum(
        1 + _looks(len(part["in"]), attribute_named(dataset, part["attribute"]))
        if "in" in part
        else 1
        for part in _parts(where)
    )


def _looks(listed: int, attribute: Attribute) -> int:
    """What finding a row in a list takes: one look-up of its level, or a search of its number."""
    if isinstance(attribute, CategoricalAttribute | DateAttribute):
        return 1
    return SEARCH_STEP * listed.bit_length()


def condition_work(where: Condition | None, rows: int, dataset: Dataset) -> Work:
    """The public work of a condition on so many rows; none without a condition."""
    if where is None:
        return NOTHING
    per_row = comparisons(where, dataset)
    return together(work("condition", rows * per_row), part_work(where, dataset))


def part_work(where: Condition, dataset: Dataset) -> Work:
    """The public work of ``fits`` and ``holds`` themselves, however few rows there are.

    Every part takes some calls, every listed value is looked up, and every leaf that lists levels
    looks at all of them.
    """
    parts = list(_parts(where))
    levels = sum(level_parts(len(one.levels)) for one in _listing(where, dataset))
    return together(
        work("parts of conditions", len(parts) + levels),
        work("listed values", sum(len(part.get("in", ())) for part in parts)),
    )


def level_parts(levels: int) -> int:
    """An array of so many levels, as a number of parts that take longer to make."""
    return levels >> 12


def condition_bytes(where: Condition | None, dataset: Dataset) -> int:
    """The public bound on the bytes that the result of ``holds`` keeps: one per level and leaf."""
    return 0 if where is None else sum(len(one.levels) for one in _listing(where, dataset))


def _listing(where: Condition, dataset: Dataset) -> Iterator[CategoricalAttribute | DateAttribute]:
    """The attribute of each leaf that lists levels."""
    for body in _parts(where):
        if "in" in body:
            attribute = attribute_named(dataset, body["attribute"])
            if isinstance(attribute, CategoricalAttribute | DateAttribute):
                yield attribute


def _parts(where: Condition) -> Iterator[Condition]:
    """A checked condition and all conditions inside it, each before those inside it."""
    pending = [where]
    while pending:
        body = pending.pop()
        yield body
        inside = [body["not"]] if "not" in body else body.get("all", body.get("any", ()))
        pending += reversed(inside)


def holds(where: Condition, records: TableRecords, dataset: Dataset) -> Callable[[slice], Truths]:
    """Returns the truth value of the condition on each row of a slice; the condition must fit.

    Danger: neighbours differ in their rows. Lists are read here, once, and not for every slice, so
    that one row more never costs a look at all levels.
    """
    if "not" in where:
        denied = holds(where["not"], records, dataset)
        return lambda rows: ~denied(rows)
    for name, join, empty in (("all", np.logical_and, True), ("any", np.logical_or, False)):
        if name in where:
            parts = [holds(part, records, dataset) for part in where[name]]
            return _Joined(parts, join, empty, next(iter(records.codes.values())))
    attribute = attribute_named(dataset, where["attribute"])
    codes = records.codes[attribute.name]
    if isinstance(attribute, DateAttribute) and "in" not in where:
        return _date_holds(where, attribute, codes, records.days[attribute.name])
    if isinstance(attribute, OpenAttribute):
        return _value_holds(where, codes, records.open_values[attribute.name])
    if not isinstance(attribute, NumericAttribute):
        named = np.zeros(len(attribute.levels), dtype=np.bool_)
        named[[attribute.places[level] for level in where["in"]]] = True
        return lambda rows: named[codes[rows]]
    return _number_holds(where, attribute, codes, records.values[attribute.name])


@dataclass(frozen=True)
class _Joined:
    """``all`` or ``any`` of several conditions."""

    parts: Sequence[Callable[[slice], Truths]]
    join: np.ufunc
    empty: bool
    column: NDArray[Any]

    def __call__(self, rows: slice) -> Truths:
        met = np.full(len(self.column[rows]), self.empty)
        for part in self.parts:
            self.join(met, part(rows), out=met)
        return met


def _children(node: Any) -> tuple[list[Any], int]:
    """Return the conditions directly inside a condition, and the number of values that it lists."""
    if not isinstance(node, Mapping):
        raise ValueError("a condition is an object")
    keys = set(node)
    if len(keys) == 1 and keys <= _GROUPS:
        (parts,) = node.values()
        if not isinstance(parts, (list, tuple)):
            raise ValueError("all and any take a list of conditions")
        return list(parts), 0
    if keys == {"not"}:
        return [node["not"]], 0
    if not isinstance(node.get("attribute"), str):
        raise ValueError("a condition has all, any, not, or an attribute with in, from or to")
    if keys == {"attribute", "in"}:
        listed = node["in"]
        if not isinstance(listed, (list, tuple)) or not all(
            isinstance(value, str) or _is_number(value) for value in listed
        ):
            raise ValueError("in takes a list of texts and finite numbers")
        return [], len(listed)
    if len(keys) < 2 or not keys <= {"attribute", "from", "to"}:
        raise ValueError("a condition has all, any, not, or an attribute with in, from or to")
    ends = [node[end] for end in ("from", "to") if end in node]
    if not (all(map(_is_number, ends)) or all(map(_is_date, ends))):
        raise ValueError("from and to are finite numbers, or dates such as 2024-12-31")
    if len(ends) == 2 and not ends[0] < ends[1]:
        raise ValueError("from is below to")
    return [], len(ends)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < 1 << 60 and isfinite(value)


def _is_date(value: Any) -> bool:
    try:
        day_number(value)
    except (TypeError, ValueError):
        return False
    return True


def _check_leaf(leaf: Mapping[str, Any], attribute: Attribute) -> None:
    numeric = isinstance(attribute, NumericAttribute)
    if "in" not in leaf:
        of_dates = all(isinstance(leaf[end], str) for end in ("from", "to") if end in leaf)
        if not (numeric or isinstance(attribute, DateAttribute)):
            raise UnsupportedQuery(
                "from and to are for numeric attributes and dates",
                supported={"where": ["attribute", "in"]},
            )
        if of_dates is numeric:
            raise UnsupportedQuery(
                "from and to are numbers or dates, as the attribute is",
                supported={"from": "a number" if numeric else "a date such as 2024-12-31"},
            )
        return
    if isinstance(attribute, OpenAttribute):
        _check_open(leaf)
        return
    for value in leaf["in"]:
        if isinstance(value, str):
            if isinstance(attribute, NumericAttribute):
                is_level = value == attribute.missing
            else:
                is_level = value in attribute.places
        else:
            is_level = numeric
        if not is_level:
            raise UnsupportedQuery(
                f"a value is not in the domain of attribute {attribute.name}",
                supported={"in": "numbers" if numeric else list(attribute.levels[:100])},
            )


def _check_open(leaf: Mapping[str, Any]) -> None:
    if len(leaf["in"]) > MOST_LISTED or not all(isinstance(value, str) for value in leaf["in"]):
        raise UnsupportedQuery(
            f"a condition on an open attribute lists at most {MOST_LISTED} texts",
            supported={"in": "texts"},
        )


def _value_holds(
    body: Mapping[str, Any], codes: Any, values: OpenValues
) -> Callable[[slice], Truths]:
    # The codes of texts that occur in rows are doubled, so they are even. A listed text that occurs
    # in no row gets an odd number and so matches no row. The largest integer at the end keeps every
    # search inside the list.
    listed = np.append(values.doubled_codes(tuple(body["in"])), np.iinfo(np.int64).max)

    def met(rows: slice) -> Truths:
        doubled = 2 * codes[rows].astype(np.int64)
        inside: Truths = listed[np.searchsorted(listed, doubled)] == doubled
        return inside

    return met


def _date_holds(
    body: Mapping[str, Any], attribute: DateAttribute, codes: Any, days: NDArray[np.int32]
) -> Callable[[slice], Truths]:
    low = attribute.offset(body["from"]) if "from" in body else None
    high = attribute.offset(body["to"]) if "to" in body else None
    missing = len(attribute.levels) - 1 if attribute.missing is not None else None

    def met(rows: slice) -> Truths:
        of_rows = days[rows]
        inside = np.ones(len(of_rows), dtype=np.bool_)
        if low is not None:
            inside &= of_rows >= low
        if high is not None:
            inside &= of_rows < high
        if missing is not None:
            # A missing date is stored as the first day of the domain. Without this check it would
            # count as that day.
            inside &= codes[rows] != missing
        return inside

    return met


def _number_holds(
    body: Mapping[str, Any], attribute: NumericAttribute, codes: Any, numbers: Any
) -> Callable[[slice], Truths]:
    low, high = body.get("from", -np.inf), body.get("to", np.inf)
    listed = np.sort([float(v) for v in body.get("in", ()) if not isinstance(v, str)])
    # Infinity at the end of the list keeps every search inside it. It matches no row, because the
    # numbers of rows are finite.
    listed = np.append(listed, np.inf)
    missing = len(attribute.levels) - 1 if attribute.missing is not None else None
    lists_missing = attribute.missing in body.get("in", ())

    def met(rows: slice) -> Truths:
        of_rows = numbers[rows]
        inside: Truths
        if "in" in body:
            inside = listed[np.searchsorted(listed, of_rows)] == of_rows
        else:
            inside = (of_rows >= low) & (of_rows < high)
        if missing is None:
            return inside
        # A missing number is stored as the middle of the attribute's bounds. Without this check it
        # would count as that number.
        without = codes[rows] == missing
        inside &= ~without
        return inside | without if lists_missing else inside

    return met
