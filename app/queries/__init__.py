"""The query kinds: one file each, and one line each here."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from app.queries.clustering import Clustering
from app.queries.distance import Distance
from app.queries.query import Query
from app.queries.selection import Selection
from app.queries.statistic import StatisticQuery
from app.queries.top_k import TopK
from app.queries.tree import AnyTree, Tree

QUERY_KINDS: dict[str, type[Query]] = {
    kind.name: kind for kind in (Selection, TopK, Tree, Distance, Clustering, StatisticQuery)
}


def _by_constants(schema: dict[str, Any]) -> None:
    """OpenAPI maps a discriminator to single models, and ``tree`` has two: what tells them apart
    is left to the constants of ``kind`` and ``algorithm``."""
    schema.pop("discriminator", None)


AnyQuery = Annotated[
    Selection | TopK | AnyTree | Distance | Clustering | StatisticQuery,
    Field(discriminator="kind", json_schema_extra=_by_constants),
]

__all__ = ["QUERY_KINDS", "AnyQuery", "Query"]
