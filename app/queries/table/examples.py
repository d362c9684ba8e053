"""Examples of table queries for the documentation, the tests and the warm-up."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from app.queries.parts.dataset_examples import described_table, open_attributes
from app.queries.parts.examples import Example, Examples
from mechanisms.model.domains import Dataset, NumericAttribute, TableDomain

BY_SEX: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.5",
    "query": {
        "kind": "table",
        "by": ["sex", "income"],
        "aggregates": [{"name": "count"}, {"name": "mean", "attribute": "age"}],
    },
}
CHAPTERS: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "1",
    "query": {
        "kind": "table",
        "by": [
            {"attribute": "occupation", "groups": {"hands": ["Craft", "Service"]}},
            {"attribute": "age", "edges": [18, 40, 65]},
        ],
        "aggregates": [
            {"name": "count", "share": "0.5"},
            {"name": "quantiles", "attribute": "age", "quantiles": [0.5], "share": "0.5"},
        ],
        "where": {"attribute": "income", "in": [">50K"]},
        "totals": {"measured": [["occupation"], []], "share": "0.5"},
    },
}


def _with_number(dataset: Dataset) -> tuple[TableDomain, NumericAttribute] | None:
    """Returns a table of public levels and its first number; None where it lacks either."""
    domain = described_table(dataset)
    if domain is None:
        return None
    numbers = [one for one in domain.attributes if isinstance(one, NumericAttribute)]
    return (domain, numbers[0]) if numbers else None


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields tables that read codes of both widths, numbers, squares, bins and a condition.

    For a dataset with open attributes it yields tables by the first of them instead.
    """
    yield from _open(dataset)
    yield from _open_sums(dataset)
    table = _with_number(dataset)
    if table is None:
        return
    domain, number = table
    of_numbers = [
        {"name": name, "attribute": number.name}
        for name in ("sum", "mean", "variance", "quantiles")
    ]
    widest = max(domain.attributes, key=lambda one: len(one.levels)).name
    yield {
        "kind": "table",
        "by": [widest, {"attribute": number.name, "edges": list(number.edges)}],
        "aggregates": [{"name": "count"}, *of_numbers],
        "totals": {"measured": [[widest], []], "share": "0.5"},
    }
    yield {
        "kind": "table",
        "by": [domain.attributes[0].name],
        "where": {"attribute": number.name, "from": number.edges[1]},
    }
    if domain.person is not None:
        yield {
            "kind": "table",
            "by": [widest, number.name],
            "aggregates": [{"name": "persons"}],
            "where": {
                "attribute": domain.attributes[0].name,
                "in": [domain.attributes[0].levels[0]],
            },
            "totals": {"measured": [[widest], []], "share": "0.5"},
        }


def _open(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields counts by the first open attribute."""
    for name in open_attributes(dataset)[:1]:
        yield {"kind": "table", "by": [name], "delta": "0.000001"}


def _open_sums(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields sums by the first open attribute and a number, under a condition."""
    if isinstance(dataset.domain, TableDomain):
        numbers = [one for one in dataset.domain.attributes if isinstance(one, NumericAttribute)]
        for counts, one in zip(_open(dataset), numbers, strict=False):
            yield {
                **counts,
                "by": [*counts["by"], one.name],
                "aggregates": [{"name": "sum", "attribute": one.name}],
                "where": {"attribute": one.name, "from": one.edges[1]},
            }


def _large(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields tables of many margins, of wide sums, and of quantiles between few and many edges."""
    table = _with_number(dataset)
    if table is None:
        return
    domain, number = table
    by_size = sorted(domain.attributes, key=lambda one: len(one.levels))
    small, widest = [one.name for one in by_size[:3]], by_size[-1].name
    margins = [list(some) for size in range(3) for some in combinations(small, size)]
    of_number = [{"name": name, "attribute": number.name} for name in ("sum", "variance")]
    yield {
        "kind": "table",
        "by": small,
        "aggregates": [{"name": "count"}, *of_number],
        "totals": {"measured": margins, "share": "0.5"},
    }
    yield {"kind": "table", "by": [widest, *small], "aggregates": [*of_number]}
    lower, upper = number.lower, number.upper
    for by, bins, shares in (([], 4, 20), ([], 400, 20), ([widest], 40, 10)):
        edges = [lower + (upper - lower) * i / bins for i in range(bins)] + [upper]
        quantiles = [(i + 0.5) / shares for i in range(shares)]
        one = {"name": "quantiles", "attribute": number.name}
        yield {
            "kind": "table",
            "by": by,
            "aggregates": [{**one, "edges": edges, "quantiles": quantiles}],
            "totals": "none",
        }


def _gaussian(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields a table of all numbers that take Gaussian noise, and one of one cell."""
    table = _with_number(dataset)
    if table is None:
        return
    domain, number = table
    widest = max(domain.attributes, key=lambda one: len(one.levels)).name
    yield {
        "kind": "table",
        "by": [widest, number.name],
        "aggregates": [
            {"name": "count"},
            {"name": "variance", "attribute": number.name},
            {"name": "quantiles", "attribute": number.name},
        ],
        "totals": {"measured": [[widest], []], "share": "0.5"},
    }
    yield {"kind": "table", "by": []}


EXAMPLES = Examples(
    request=BY_SEX,
    answer={
        "confidence": 0.95,
        "by": {"sex": ["Female", "Male"], "income": ["<=50K", ">50K"]},
        "cells": {
            "count": {
                "value": [14423, 1769, 22732, 9918],
                "low": [14418, 1764, 22727, 9913],
                "high": [14428, 1774, 22737, 9923],
            },
            "mean(age)": {
                "value": [36.2, 42.1, 37.1, 44.6],
                "low": [36.1, 41.7, 37.0, 44.5],
                "high": [36.3, 42.5, 37.2, 44.7],
            },
        },
        "totals": [
            {
                "by": [],
                "measured": False,
                "cells": {
                    "count": {"value": [48842], "low": [48834], "high": [48850]},
                    "mean(age)": {"value": [38.6], "low": [38.5], "high": [38.7]},
                },
            }
        ],
        "noise": [
            {"what": "count", "by": None, "law": "discrete_laplace", "scale": 2.67},
            {
                "what": "sum of age around the middle of its bounds",
                "by": None,
                "law": "discrete_laplace",
                "scale": 480.0,
            },
        ],
    },
    plain=({"kind": "table", "by": []},),
    every=_every,
    large=_large,
    gaussian=_gaussian,
    queries={
        "table": Example("Counts and mean ages by sex and income", BY_SEX),
        "table of groups": Example("Groups of values, other bins, measured totals", CHAPTERS),
    },
)
