"""The public facts about a stored dataset that the form of a question reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.queries.parts.form import AttributeFacts, Facts
from mechanisms.model.domains import NumericAttribute, TableDomain
from storage.catalogue.datasets import StoredDataset


def facts_of(stored: StoredDataset) -> Facts:
    """From the description; attributes are absent until the domain is complete."""
    domain = stored.public.domain if stored.public else None
    attributes: tuple[AttributeFacts, ...] = ()
    if isinstance(domain, TableDomain):
        attributes = tuple(
            AttributeFacts(one.name, (), (one.lower, one.upper))
            if isinstance(one, NumericAttribute)
            else AttributeFacts(one.name, one.levels, None)
            for one in domain.attributes
        )
    description: Mapping[str, Any] = stored.description
    return Facts(
        name=stored.name,
        kind=description["kind"],
        neighbouring=description["neighbouring"],
        attributes=attributes,
        class_attribute=description.get("class_attribute"),
    )
