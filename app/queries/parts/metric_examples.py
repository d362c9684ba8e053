"""The ways to learn a metric over a dataset, for examples."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from mechanisms.distances.options import Rule
from mechanisms.model.domains import Dataset, TableDomain

#: Levels that one byte tells apart.
BYTE = 256


def attribute_lists(dataset: Dataset) -> Iterator[list[str] | None]:
    """Those whose values fit a byte, where they are several, and all: their columns differ in type.

    Nothing for a dataset that is no table.
    """
    domain = dataset.domain
    if not isinstance(domain, TableDomain):
        return
    inputs = [one for one in domain.attributes if one.name != domain.class_attribute]
    narrow = [one.name for one in inputs if len(one.levels) <= BYTE]
    if 2 <= len(narrow) < len(inputs):
        yield narrow
    yield None


def contexts() -> Iterator[dict[str, Any]]:
    """Every way to find the context of an attribute."""
    yield from ({"context": "baseline", "selection_rule": rule.value} for rule in Rule)
    ways = ("mean_su", "max_relevance", "max_dependency")
    for context, sensitivity in product(ways, ("global", "local")):
        yield {"context": context, "sensitivity": sensitivity}
