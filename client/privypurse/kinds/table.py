"""The kind of query ``table``: grouped numbers with intervals, for one charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack

from privypurse.amounts import Number, decimal_text
from privypurse.answers.tables import Table
from privypurse.kinds.query import Call, Query

#: One attribute that groups a table: its name, ``{"attribute", "edges"}``, or ``{"attribute",
#: "groups": {name: values}}``.
By = str | Mapping[str, Any]
#: One number of every cell: ``{"name": "count"}``, or ``{"name": "mean", "attribute": "age"}``, and
#: further fields.
Aggregate = Mapping[str, Any]


class Options(TypedDict, total=False):
    aggregates: Sequence[Aggregate]
    where: Mapping[str, Any]
    totals: Literal["sums", "none"] | Mapping[str, Any]
    consistent: bool
    non_negative: bool
    delta: Number


def table(by: Sequence[By] = (), **options: Unpack[Options]) -> Query[Table]:
    """A query for numbers by the groups of ``by``; without groups, for one cell."""
    body: dict[str, Any] = {"kind": "table", "by": list(by), **options}
    if "delta" in body:
        body["delta"] = decimal_text(body["delta"])
    return Query(body, Table.read)


class TableCall(Call):
    def table(
        self,
        dataset: str,
        by: Sequence[By] = (),
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        key: str | None = None,
        **options: Unpack[Options],
    ) -> Table:
        """Pay for one table of counts, persons, sums, means, variances or quantiles by groups.

        ``rho`` in place of ``epsilon``: Gaussian noise, in accounts that allow it.
        """
        return self.ask(dataset, table(by, **options), epsilon=epsilon, rho=rho, key=key)
