"""How stored queries are told apart in the history of a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounting.privacy_loss import parse_units
from mechanisms.model.domains import NeighbouringRelation
from mechanisms.statistics.validity import choose

#: By kind: the fields that name the mechanism; that of a statistic may follow from others.
MECHANISM_FIELDS = {
    "selection": ("selector", "sensitivity"),
    "top_k": ("selector", "sensitivity"),
    "tree": ("algorithm", "selector", "sensitivity"),
    "distance": ("context", "sensitivity"),
    "clustering": ("encoding",),
}


def mechanism_label(query: Mapping[str, Any], neighbouring: str) -> str:
    """The kind of a stored query and the mechanism that answered it."""
    kind = str(query["kind"])
    if kind == "statistic":
        delta = parse_units(query["delta"], 18)
        relation = NeighbouringRelation(neighbouring)
        return f"{kind}: {choose(query['statistic'], query['mechanism'], relation, delta)}"
    return ": ".join([kind, *(str(query[name]) for name in MECHANISM_FIELDS[kind])])
