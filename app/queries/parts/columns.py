"""Answers as columns of plain values, from which files for data frames are written.

Columns are a pure function of the stored answer: no records, no account and no clock are read.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: An answer as a table: column name → values. All columns have the same length. Values are whole
#: numbers, floats or texts; None marks an absent value.
Columns = Mapping[str, Sequence[Any]]

#: The members of a released number, in the order in which they become columns.
NUMBER = ("value", "low", "high", "raw")
#: The columns that ``number_row`` fills. ``suppressed`` is true where the dataset's minimum count
#: hides the number.
NUMBER_ROW = (*NUMBER, "suppressed")
#: A charge that has no ε, no δ or no ρ contains one of these values in its place. The text in a
#: file then omits that amount.
ABSENT = (None, "0")
#: Members of an answer that describe the whole of it. The function ``explained`` adds them as
#: columns of their own, so the other columns leave them out.
EXPLAINING = ("question", "confidence")


def of_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Columns from rows, each with a value for every name. Columns without any value are left out.

    The first column always stays, so that no rows give an empty column.
    """
    listed = list(rows)
    columns = {name: [row[place] for row in listed] for place, name in enumerate(names)}
    first, *_ = names
    return {
        name: values
        for name, values in columns.items()
        if name == first or any(value is not None for value in values)
    }


def number_row(number: Mapping[str, Any] | float | None) -> tuple[Any, ...]:
    """A released number in the order of ``NUMBER_ROW``; answers of before hold a plain number."""
    if not isinstance(number, Mapping):
        return number, None, None, None, None
    return tuple(number.get(name) for name in NUMBER_ROW)


def one_type(values: list[Any]) -> list[Any]:
    """The values as one type: texts if any is a text, floats if any is a float."""
    present = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in present):
        return [None if value is None else str(value) for value in values]
    if any(isinstance(value, float) for value in present):
        return [None if value is None else float(value) for value in values]
    return values


def plain_columns(answer: Mapping[str, Any]) -> Columns:
    """One row with the members of the answer; lists and objects become JSON text."""
    members = {name: value for name, value in answer.items() if name not in EXPLAINING}
    return {name: [_plain(value)] for name, value in members.items()}


def explained(columns: Columns, reply: Mapping[str, Any]) -> Columns:
    """The columns of an answer with three more: the interval in words, the question, the price.

    ``reply``: the stored reply. A column of this name that the answer has itself stays.
    """
    answer, charge = reply["answer"], reply["charge"]
    rows = len(next(iter(columns.values())))
    more: dict[str, list[str | None]] = {}
    if "low" in columns and "high" in columns and "confidence" in answer:
        ends = zip(columns["low"], columns["high"], strict=True)
        likely = f"with a probability of at least {answer['confidence']:g}"
        more["interval"] = [
            None if low is None else f"{low} to {high} {likely}" for low, high in ends
        ]
    if "question" in answer:
        more["question"] = [answer["question"]] * rows
    symbols = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    amounts = {symbol: charge.get(name) for name, symbol in symbols.items()}
    spent = (f"{symbol} = {amount}" for symbol, amount in amounts.items() if amount not in ABSENT)
    more["charge"] = [", ".join(spent)] * rows
    return {**columns, **{name: values for name, values in more.items() if name not in columns}}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping | list | tuple | bool):
        return json.dumps(value, ensure_ascii=False)
    return value
