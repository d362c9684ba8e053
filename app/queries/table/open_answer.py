"""Counts by groups whose values are not public: the answer, and what a quote says of it."""

from typing import Any

from app.queries.parts.accuracy import significant
from app.queries.table.answer import plain
from mechanisms.noise.laplace_sums import half_width
from mechanisms.tables.columns import CONFIDENCE, MISS
from mechanisms.tables.open_groups import MOST_GROUPS, Groups, OpenPlan


def open_answer(plan: OpenPlan, released: Groups) -> dict[str, Any]:
    """Returns one label per axis and group, and the counts: ``open`` says that they go together."""
    width = half_width(plan.rate, 1, MISS)
    count = {
        "value": plain(released.counts),
        # A group in the answer has at least one record, so no interval begins below 1.
        "low": plain((released.counts - width).clip(min=1)),
        "high": plain(released.counts + width),
    }
    names = [one.attribute for one in plan.by]
    columns = zip(names, released.labels, strict=True)
    return {
        "confidence": float(CONFIDENCE),
        "open": True,
        "by": {name: list(labels) for name, labels in columns},
        "cells": {"count": count},
        "threshold": plan.threshold,
        "most_groups": plan.groups,
        "noise": [
            {
                "what": "count",
                "by": None,
                "law": "discrete_laplace",
                "scale": float(1 / plan.rate.exponent()),
            }
        ],
    }


def open_accuracy(plan: OpenPlan) -> dict[str, Any]:
    """Predicts which groups come back, and the error of their counts, from public facts alone."""
    return {
        "confidence": float(CONFIDENCE),
        "threshold": plan.threshold,
        "most_groups": plan.groups,
        "error": significant(float(half_width(plan.rate, 1, MISS))),
        "explanation": (
            "Groups come back only if their noisy counts reach `threshold`, at most "
            f"{MOST_GROUPS} of them. With this probability each count is within `error` of the "
            "true one."
        ),
    }
