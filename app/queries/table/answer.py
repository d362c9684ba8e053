"""The answer of a ``table`` query as JSON columns."""

from typing import Any

from app.queries.parts.accuracy import significant
from mechanisms.tables.aggregates import Numbers
from mechanisms.tables.columns import CONFIDENCE, MISS, Column, Columns, TableColumns
from mechanisms.tables.plan import TablePlan


def answer_of(plan: TablePlan, columns: TableColumns) -> dict[str, Any]:
    """Returns the columns of all cells and totals, in row-major order of ``by``."""
    answer: dict[str, Any] = {
        "confidence": float(CONFIDENCE),
        "by": {name: list(labels) for name, labels in plan.labels.items()},
        **written(columns.table()),
    }
    if plan.request.totals != "none":
        answer["totals"] = [
            {"by": list(margin), "measured": measured, **written(numbers)}
            for margin, measured, numbers in columns.totals()
        ]
    answer["noise"] = noise_of(plan)
    return answer


def noise_of(plan: TablePlan) -> list[dict[str, Any]]:
    """Returns the public law of the noise of each measurement."""
    return [
        {
            "what": one.part.what,
            "by": None if one.margin is None else list(one.margin),
            "law": one.noise.law,
            "scale": one.noise.scale * float(one.grid.step),
            "step": one.noise.unit * float(one.grid.step),
        }
        for one in plan.measurements
    ]


def errors_of(plan: TablePlan) -> list[dict[str, Any]]:
    """Predicts the error of every measured number, from public facts alone."""
    return [
        {
            "what": one.what,
            "error": significant(one.noise.half_width(1, MISS) * float(one.grid.step)),
        }
        for one in plan.measurements
    ]


def written(columns: Columns) -> dict[str, Any]:
    """Returns the numbers of each column as lists, and which are suppressed if any may be."""
    result: dict[str, Any] = {"cells": {name: numbers(one) for name, one in columns.items()}}
    marks = next(iter(columns.values())).suppressed
    if marks is not None:
        result["suppressed"] = marks.tolist()
    return result


def numbers(column: Column) -> dict[str, list[Any]]:
    """Returns value, low and high of one column, and raw if it was adjusted; None if suppressed."""
    lists = {"value": column.value, "low": column.box.low, "high": column.box.high}
    if column.raw is not None:
        lists["raw"] = column.raw
    marks = column.suppressed
    if marks is None:
        return {name: plain(values) for name, values in lists.items()}
    return {
        name: [
            None if mark else value
            for value, mark in zip(plain(values), marks.tolist(), strict=True)
        ]
        for name, values in lists.items()
    }


def plain(values: Numbers) -> list[Any]:
    """Returns the numbers as JSON values: whole ones stay whole, and −0.0 is written as 0."""
    result: list[Any] = (values + 0).tolist()
    return result
