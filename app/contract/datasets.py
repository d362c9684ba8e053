"""Datasets, their versions and their uploads as clients see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import ConfigDict

from app.contract.amounts import Limit
from app.contract.models import Reply
from mechanisms.model.domains import Dataset, GraphDomain, NumericAttribute, TableDomain


class DatasetVersion(Reply):
    """One upload that was published: ``ready`` when queries read it, ``retired`` since they do not.

    ``removed``: when its prepared records were deleted; running queries may still need them.
    """

    version: int
    status: Literal["ready", "retired"]
    published: datetime
    removed: datetime | None = None


class DatasetOut(Reply):
    """The public description of a dataset; its members are those it was registered with.

    ``upload`` is for its owner alone, as are the statuses ``preparing`` and ``refused``: they are
    those of the latest upload, and ``upload.queries`` says what queries read meanwhile. So is
    ``versions``, which a dataset that is asked for by its name has.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    owner: str
    cap: Limit
    version: int
    status: str
    created: datetime
    upload: dict[str, Any] | None = None
    versions: list[DatasetVersion] | None = None


class DatasetName(Reply):
    """All that an admin sees of a dataset."""

    name: str


class UploadOut(Reply):
    """The version that queries read: the new one when ready, the one before while preparing."""

    dataset: str
    version: int
    status: Literal["ready", "preparing"]


class NodesOut(Reply):
    """A node list that was accepted."""

    dataset: str
    nodes: int


@dataclass(frozen=True)
class AttributeFacts:
    """A public attribute: the values of a categorical one, the bounds of a numeric one."""

    name: str
    values: tuple[str, ...]
    bounds: tuple[float, float] | None


@dataclass(frozen=True)
class Facts:
    """What is public about a dataset, as far as the form of a query needs it."""

    name: str
    kind: str
    neighbouring: str
    attributes: tuple[AttributeFacts, ...] = ()
    class_attribute: str | None = None

    @classmethod
    def of(cls, name: str, description: Mapping[str, Any], public: Dataset | None) -> Self:
        """The facts of a registered dataset; ``public`` is None before its node list came."""
        domain = public.domain if public else None
        attributes: tuple[AttributeFacts, ...] = ()
        if isinstance(domain, TableDomain):
            attributes = tuple(
                AttributeFacts(one.name, (), (one.lower, one.upper))
                if isinstance(one, NumericAttribute)
                else AttributeFacts(one.name, one.levels, None)
                for one in domain.attributes
            )
        return cls(
            name=name,
            kind=description["kind"],
            neighbouring=description["neighbouring"],
            attributes=attributes,
            class_attribute=description.get("class_attribute"),
        )

    def values_of(self, name: str | None) -> tuple[str, ...]:
        """The values of the attribute ``name``; empty when it is numeric or absent."""
        return next((one.values for one in self.attributes if one.name == name), ())

    @property
    def has_numbers(self) -> bool:
        return any(one.bounds is not None for one in self.attributes)


def graph_domain(public: Dataset | None) -> GraphDomain | None:
    """The domain of a graph; None for other datasets and before a graph's nodes are known."""
    domain = public.domain if public else None
    return domain if isinstance(domain, GraphDomain) else None
