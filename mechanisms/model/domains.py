"""Public facts: what a dataset may contain, fixed before anyone has seen its records.

Everything here may be printed, priced with and shown to analysts. Nothing here is ever computed
from records; the only exception is the row count of a ``replace`` table, which is public by
definition of that relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise


class NeighbouringRelation(StrEnum):
    """What one change is, hence whose data a loss of ε protects."""

    EDGE = "edge"
    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    PREFIX = "prefix"


@dataclass(frozen=True)
class GraphDomain:
    """Simple undirected graphs on a fixed public set of nodes, of bounded degree.

    ``labels`` names the nodes, in order; None stands for the numbers 0 … nodes − 1.
    """

    nodes: int
    max_degree: int
    labels: Sequence[int] | Sequence[str] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.nodes < 1:
            raise ValueError("a graph has at least one node")
        if not 0 <= self.max_degree <= self.nodes - 1:
            raise ValueError("max_degree lies between 0 and the number of nodes less one")

    def label(self, node: int) -> int | str:
        """The name of the ``node``-th candidate, in the type it was registered with."""
        return node if self.labels is None else self.labels[node]


@dataclass(frozen=True)
class CategoricalAttribute:
    """A closed list of texts; ``missing`` is the text of a missing cell, one more level."""

    name: str
    values: tuple[str, ...]
    missing: str | None = None

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """All levels in code order: the values, then the missing level if it is not one of them."""
        if self.missing is None or self.missing in self.values:
            return self.values
        return (*self.values, self.missing)


@dataclass(frozen=True)
class NumericAttribute:
    """A number inside public bounds, cut into public bins [e₀, e₁), …, the last one closed.

    ``missing`` is the text of a missing cell: a bin of its own after the others. With ``clamp``
    cells outside the bounds are moved to the nearer bound; without it they are refused.
    """

    name: str
    lower: float
    upper: float
    edges: tuple[float, ...]
    missing: str | None = None
    clamp: bool = False

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """One text a bin, for answers: "[0,12)", …, "[108,120]", then the missing level."""
        last = len(self.edges) - 2
        texts = _distinct_texts(self.edges)
        bins = tuple(
            f"[{low},{high}{']' if i == last else ')'}"
            for i, (low, high) in enumerate(pairwise(texts))
        )
        return bins if self.missing is None else (*bins, self.missing)


def _distinct_texts(numbers: Sequence[float]) -> list[str]:
    """Numbers in six digits, or in all of them where six do not tell each from the others."""
    texts = [f"{number:g}" for number in numbers]
    if len(set(texts)) < len(texts):
        texts = [repr(number).removesuffix(".0") for number in numbers]
    return texts


Attribute = CategoricalAttribute | NumericAttribute


@dataclass(frozen=True)
class TableDomain:
    """Rows over public attributes: ``rows`` of them (``replace``) or up to ``max_rows``."""

    attributes: tuple[Attribute, ...]
    class_attribute: str | None = None
    rows: int | None = None
    max_rows: int | None = None
    min_rows: int = 0

    def attribute(self, name: str) -> Attribute:
        """The attribute called ``name``; KeyError when there is none."""
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(name)


@dataclass(frozen=True)
class PrefixDomain:
    """A sorted public list of which the first k apply; only the cut-off k is protected."""

    public_values: tuple[float, ...]


Domain = GraphDomain | TableDomain | PrefixDomain


@dataclass(frozen=True)
class Dataset:
    """The public face of one dataset: all that a price may depend on."""

    name: str
    neighbouring: NeighbouringRelation
    domain: Domain
    records_per_person: int = 1
