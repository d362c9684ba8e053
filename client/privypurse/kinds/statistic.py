"""The kind of query ``statistic``, whose answer is one number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, Unpack

from privypurse.amounts import Number, decimal_text
from privypurse.answers.answer import Value
from privypurse.kinds.query import Call, Query

StatisticName = Literal[
    "count",
    "sum",
    "mean",
    "median",
    "quantile",
    "smallest_sum",
    "edges",
    "triangles",
    "two_triangles",
    "stars",
]


class Options(TypedDict, total=False):
    attribute: str
    quantile: float
    k: int
    where: Mapping[str, Any]
    mechanism: Literal[
        "laplace",
        "exponential",
        "smooth_sensitivity",
        "largest_local_sensitivities",
        "noisy_local_sensitivity",
        "ladder",
    ]
    delta: Number


def statistic(name: StatisticName, **options: Unpack[Options]) -> Query[Value]:
    """A query for one number about a table or a graph, such as a count or a mean."""
    body: dict[str, Any] = {"kind": "statistic", "statistic": name, **options}
    if "delta" in body:
        body["delta"] = decimal_text(body["delta"])
    return Query(body, Value.read)


class StatisticCall(Call):
    def statistic(
        self,
        dataset: str,
        name: StatisticName,
        *,
        epsilon: Number,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Value:
        """Pay for one number about a table or a graph and return it."""
        return self.ask(dataset, statistic(name, **options), epsilon=epsilon, key=key)
