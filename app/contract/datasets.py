"""Datasets, their versions and their uploads as clients see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import ConfigDict

from app.contract.amounts import Allowance
from app.contract.models import Reply
from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import Dataset, GraphDomain, NumericAttribute, TableDomain
from mechanisms.model.open_domain import OpenAttribute


class DatasetVersion(Reply):
    """One published version: ``ready`` while new queries read it, ``retired`` afterwards.

    ``removed``: the moment at which its prepared records were deleted. A retired version keeps
    them until no running query needs them.
    """

    version: int
    status: Literal["ready", "retired"]
    published: datetime
    removed: datetime | None = None


class DatasetOut(Reply):
    """The public description of a dataset, with the members of its registration.

    Only the owner sees ``upload`` and the statuses ``preparing`` and ``refused``. They describe the
    latest upload, and ``upload.queries`` says which version queries read meanwhile. Only the owner
    sees ``versions``, and only of a single dataset, not in lists.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    owner: str
    cap: Allowance
    version: int
    status: str
    created: datetime
    upload: dict[str, Any] | None = None
    versions: list[DatasetVersion] | None = None


class DatasetName(Reply):
    """The name of a dataset, which is the only part that an admin sees."""

    name: str


class UploadOut(Reply):
    """An upload. ``version``: the one that queries read: the new one only if it is ``ready``."""

    dataset: str
    version: int
    status: Literal["ready", "preparing"]


class NodesOut(Reply):
    """The number of nodes in a node list that was accepted."""

    dataset: str
    nodes: int


@dataclass(frozen=True)
class AttributeFacts:
    """A public attribute: its values if it is categorical, its bounds if it is numeric.

    ``dates``: the first and the last date; the values are the bins then. ``is_open``: the values
    are private, and none is listed.
    """

    name: str
    values: tuple[str, ...]
    bounds: tuple[float, float] | None
    dates: tuple[str, str] | None = None
    is_open: bool = False


@dataclass(frozen=True)
class Facts:
    """The public facts of a dataset that the form of a query shows."""

    name: str
    kind: str
    neighbouring: str
    attributes: tuple[AttributeFacts, ...] = ()
    class_attribute: str | None = None
    #: True if the rows of the table belong to persons, so that a query can count persons.
    has_persons: bool = False

    @classmethod
    def of(cls, name: str, description: Mapping[str, Any], public: Dataset | None) -> Self:
        """The facts of a registered dataset. ``public`` is None until its nodes are known."""
        domain = public.domain if public else None
        attributes: tuple[AttributeFacts, ...] = ()
        if isinstance(domain, TableDomain):
            attributes = tuple(
                AttributeFacts(one.name, (), (one.lower, one.upper))
                if isinstance(one, NumericAttribute)
                else AttributeFacts(
                    one.name,
                    () if isinstance(one, OpenAttribute) else one.levels,
                    None,
                    (one.first, one.last) if isinstance(one, DateAttribute) else None,
                    isinstance(one, OpenAttribute),
                )
                for one in domain.attributes
            )
        return cls(
            name=name,
            kind=description["kind"],
            neighbouring=description["neighbouring"],
            attributes=attributes,
            class_attribute=description.get("class_attribute"),
            has_persons="person" in description,
        )

    def values_of(self, name: str | None) -> tuple[str, ...]:
        """The values of the attribute ``name``; empty when it is numeric or absent."""
        return next((one.values for one in self.attributes if one.name == name), ())

    @property
    def has_open(self) -> bool:
        return any(one.is_open for one in self.attributes)

    @property
    def has_numbers(self) -> bool:
        return any(one.bounds is not None for one in self.attributes)


def graph_domain(public: Dataset | None) -> GraphDomain | None:
    """The domain of a graph; None for other datasets and before a graph's nodes are known."""
    domain = public.domain if public else None
    return domain if isinstance(domain, GraphDomain) else None
