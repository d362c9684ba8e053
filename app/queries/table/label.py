"""The name of a table in histories: its aggregates."""

from collections.abc import Mapping
from typing import Any

from mechanisms.model.domains import NeighbouringRelation


def aggregates_of(query: Mapping[str, Any], relation: NeighbouringRelation) -> str:
    """Returns the names of the aggregates of a stored query, such as "count, mean"."""
    del relation
    return ", ".join(dict.fromkeys(one["name"] for one in query["aggregates"]))
