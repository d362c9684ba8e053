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


def contexts(dataset: Dataset) -> Iterator[dict[str, Any]]:
    """Every way to find the context of an attribute of a table."""
    yield from ({"context": "baseline", "selection_rule": rule.value} for rule in Rule)
    domain = dataset.domain
    # Entropies need a public lower bound on the rows.
    if isinstance(domain, TableDomain) and (domain.rows or domain.min_rows):
        yield {"context": "mean_su"}
    for context, sensitivity in product(("max_relevance", "max_dependency"), ("global", "local")):
        # With one attribute per context there is a choice wherever there are three attributes.
        yield {"context": context, "sensitivity": sensitivity, "context_size": 1}
