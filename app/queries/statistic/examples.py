"""Examples of statistic queries for the documentation, the tests and the warm-up."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from app.queries.parts.examples import Examples, TypicalQuestion
from app.queries.statistic.body import FIELDS
from mechanisms.model.domains import CategoricalAttribute, Dataset, NumericAttribute, TableDomain
from mechanisms.statistics.validity import VALID

#: The number of comparisons in the long condition by which the machine's speed is measured.
LEAVES = 200
WOMEN: dict[str, Any] = {
    "dataset": "adult",
    "epsilon": "0.1",
    "query": {
        "kind": "statistic",
        "statistic": "count",
        "where": {"attribute": "sex", "in": ["Female"]},
    },
}


def _every(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields a query for each statistic and each mechanism that may release it.

    Statistics of tables come with a condition and without: the two may run different code. One more
    condition lists levels.
    """
    values: dict[str, Any] = {"quantile": 0.25, "k": 3}
    where: list[dict[str, Any]] = [{}]
    if isinstance(dataset.domain, TableDomain):
        numbers = [one for one in dataset.domain.attributes if isinstance(one, NumericAttribute)]
        for number in numbers[:1]:
            values["attribute"] = number.name
            where.append({"where": {"attribute": number.name, "from": number.edges[1]}})
    for row, condition in product(VALID, where):
        fits = {"where", *values} >= set(FIELDS[row.statistic])
        if dataset.neighbouring in row.relations and fits:
            yield {
                "kind": "statistic",
                "statistic": row.statistic,
                "mechanism": row.mechanism,
                "delta": "0.001" if row.delta else "0",
                **{name: values[name] for name in FIELDS[row.statistic] if name != "where"},
                **condition,
            }
    if isinstance(dataset.domain, TableDomain):
        yield from _of_levels(dataset.domain)


def _large(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Yields counts under conditions of many leaves, and of leaves that list many levels."""
    if isinstance(dataset.domain, TableDomain):
        numbers = [one for one in dataset.domain.attributes if isinstance(one, NumericAttribute)]
        for one in numbers[:1]:
            ranges = [{"attribute": one.name, "from": one.lower, "to": one.upper}] * (LEAVES // 2)
            yield {"kind": "statistic", "statistic": "count", "where": {"any": ranges}}
        for count in _of_levels(dataset.domain):
            where = count["where"]
            yield {**count, "where": {"any": [where] * LEAVES}}
            levels = next(
                one.levels for one in dataset.domain.attributes if one.name == where["attribute"]
            )
            yield {**count, "where": {"any": [{**where, "in": list(levels[:300])}] * 3}}


def _of_levels(domain: TableDomain) -> Iterator[dict[str, Any]]:
    """Yields a count under a condition that lists levels of the attribute with most of them."""
    listed = [one for one in domain.attributes if isinstance(one, CategoricalAttribute)]
    if listed:
        widest = max(listed, key=lambda one: len(one.levels))
        where = {"attribute": widest.name, "in": [widest.levels[0]]}
        yield {"kind": "statistic", "statistic": "count", "where": where}


def _typical(dataset: str, question: str, statistic: str) -> TypicalQuestion:
    query = {"kind": "statistic", "statistic": statistic}
    return TypicalQuestion(dataset, question, query, "error", "off by at most {}")


EXAMPLES = Examples(
    request=WOMEN,
    answer={
        "value": 16204,
        "low": 16174,
        "high": 16234,
        "confidence": 0.95,
        "noise_scale": 10.0,
    },
    every=_every,
    large=_large,
    typical=(
        _typical("graph", "number of edges", "edges"),
        _typical("table", "count of records", "count"),
        _typical("prefix", "smallest sum", "smallest_sum"),
    ),
)
