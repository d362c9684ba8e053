"""What is public about a dataset, as far as the form of a question needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mechanisms.model.domains import NumericAttribute, TableDomain
from storage.catalogue.datasets import StoredDataset


@dataclass(frozen=True)
class AttributeFacts:
    """A public attribute: the values of a categorical one, the bounds of a numeric one."""

    name: str
    values: tuple[str, ...]
    bounds: tuple[float, float] | None


@dataclass(frozen=True)
class Facts:
    name: str
    kind: str
    neighbouring: str
    attributes: tuple[AttributeFacts, ...] = ()
    class_attribute: str | None = None

    @classmethod
    def of(cls, stored: StoredDataset) -> Facts:
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
        return cls(
            name=stored.name,
            kind=description["kind"],
            neighbouring=description["neighbouring"],
            attributes=attributes,
            class_attribute=description.get("class_attribute"),
        )

    def values_of(self, name: str | None) -> tuple[str, ...]:
        """The values of an attribute by name; none where it has none or is not there."""
        return next((one.values for one in self.attributes if one.name == name), ())
