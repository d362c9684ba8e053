"""Numbers by groups whose values are not public: the answer, and what a quote says of it."""

from typing import Any

from app.queries.parts.accuracy import significant
from app.queries.table.answer import errors_of, noise_of, written
from mechanisms.noise.laplace_sums import half_width
from mechanisms.tables.columns import CONFIDENCE, MISS, TableColumns
from mechanisms.tables.open_groups import MOST_GROUPS, Groups, OpenPlan
from mechanisms.tables.tabulate import ReleasedTable


def open_answer(plan: OpenPlan, released: Groups) -> dict[str, Any]:
    """Returns one label per axis and group, and its numbers: ``open`` says they go together."""
    columns = TableColumns(plan, ReleasedTable(released.cells, {})).table()
    answer = written(columns)
    if "count" in answer["cells"]:
        # A group is in the answer only if it has at least one record. So no interval begins below
        # 1.
        count = answer["cells"]["count"]
        count["low"] = [max(1, low) for low in count["low"]]
    labels = zip(plan.request.names, released.labels, strict=True)
    return {
        "confidence": float(CONFIDENCE),
        "open": True,
        "by": {name: list(of_groups) for name, of_groups in labels},
        "cells": answer["cells"],
        "threshold": plan.threshold,
        "most_groups": plan.groups,
        "noise": noise_of(plan),
    }


def open_accuracy(plan: OpenPlan) -> dict[str, Any]:
    """Predicts which groups come back, and the error of their counts, from public facts alone."""
    return {
        "confidence": float(CONFIDENCE),
        "threshold": plan.threshold,
        "most_groups": plan.groups,
        "error": significant(float(half_width(plan.rate, 1, MISS))),
        "parts": errors_of(plan),
        "explanation": (
            "Groups come back only if their noisy counts reach `threshold`, at most "
            f"{MOST_GROUPS} of them. With this probability each count is within `error` of the "
            "true one, and each number of `parts` within its own."
        ),
    }
