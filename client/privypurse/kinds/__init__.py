"""The kinds of queries, one file each, as functions with typed options and answers.

Omitted options take the service's defaults, which ``GET /v1/catalogue`` lists. A query is a plain
value: it can be quoted, sent and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from privypurse.kinds.clustering import ClusteringCall, clustering
from privypurse.kinds.distance import DistanceCall, distance
from privypurse.kinds.query import Query, Utility
from privypurse.kinds.selection import SelectionCall, selection
from privypurse.kinds.statistic import StatisticCall, statistic
from privypurse.kinds.table import TableCall, table
from privypurse.kinds.top_k import TopKCall, top_k
from privypurse.kinds.tree import TreeCall, tree
from privypurse.levels import Columns

__all__ = [
    "READERS",
    "KindCalls",
    "Query",
    "Utility",
    "clustering",
    "distance",
    "selection",
    "statistic",
    "table",
    "top_k",
    "tree",
]


#: For each kind of query: the function that reads its replies, and True if that function needs the
#: description of the dataset.
READERS: dict[str, tuple[Callable[[Mapping[str, Any], Columns], Any], bool]] = {
    str(query.body["kind"]): (query.read, query.described)
    for query in (
        selection("degree"),
        top_k(1, "degree"),
        tree(),
        distance(),
        clustering(1),
        statistic("count"),
        table(),
    )
}


class KindCalls(
    SelectionCall,
    TopKCall,
    TreeCall,
    DistanceCall,
    ClusteringCall,
    StatisticCall,
    TableCall,
):
    """The methods of ``PrivyPurse`` that pay for a query, one method per kind."""
