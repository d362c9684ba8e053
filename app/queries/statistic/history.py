"""What a history shows of a statistic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounting.privacy_loss import parse_units
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.statistics.validity import choose


def mechanism(query: Mapping[str, Any], relation: NeighbouringRelation) -> str:
    """The mechanism of a stored query; one that the query does not name follows from the rest."""
    delta = parse_units(query["delta"], 18)
    return choose(query["statistic"], query["mechanism"], relation, delta)
