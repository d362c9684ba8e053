"""Public facts: what a dataset may contain, fixed before any record is read.

Never compute anything here from records: prices and pages use these values freely. The one
exception is the row count of a ``replace`` table, which that relation makes public.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import pairwise

from mechanisms.model.dates import DateAttribute
from mechanisms.model.open_domain import OpenAttribute


class NeighbouringRelation(StrEnum):
    """Which change makes two datasets neighbours, and so whose data a privacy loss protects."""

    EDGE = "edge"
    ADD_REMOVE = "add_remove"
    REPLACE = "replace"
    PREFIX = "prefix"


@dataclass(frozen=True)
class GraphDomain:
    """Simple undirected graphs on a fixed public set of nodes, with bounded degree.

    ``labels`` names the nodes in order; None means the numbers 0 … nodes − 1.
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
        """The name of candidate ``node``, in the type that it was registered with."""
        return node if self.labels is None else self.labels[node]


@dataclass(frozen=True)
class CategoricalAttribute:
    """A closed list of texts; ``missing``, the text of a missing cell, may be one more level."""

    name: str
    values: tuple[str, ...]
    missing: str | None = None

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """All levels in code order: the values, then the missing level unless it is one of them."""
        if self.missing is None or self.missing in self.values:
            return self.values
        return (*self.values, self.missing)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The code of each level, which records store in its place."""
        return {level: code for code, level in enumerate(self.levels)}


@dataclass(frozen=True)
class NumericAttribute:
    """A number inside public bounds, cut into public bins [e₀, e₁), …; the last bin is closed.

    ``missing`` is the text of a missing cell, which has a bin of its own after the others. With
    ``clamp``, cells outside the bounds move to the nearer bound; without it they are refused.
    """

    name: str
    lower: float
    upper: float
    edges: tuple[float, ...]
    missing: str | None = None
    clamp: bool = False

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The text of each bin in answers: "[0,12)", …, "[108,120]", then the missing level."""
        last = len(self.edges) - 2
        texts = _distinct_texts(self.edges)
        bins = tuple(
            f"[{low},{high}{']' if i == last else ')'}"
            for i, (low, high) in enumerate(pairwise(texts))
        )
        return bins if self.missing is None else (*bins, self.missing)

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The code of each level."""
        return {level: code for code, level in enumerate(self.levels)}


def _distinct_texts(numbers: Sequence[float]) -> list[str]:
    """Numbers in six digits, or in all digits if six do not distinguish them."""
    texts = [f"{number:g}" for number in numbers]
    if len(set(texts)) < len(texts):
        texts = [repr(number).removesuffix(".0") for number in numbers]
    return texts


Attribute = CategoricalAttribute | NumericAttribute | DateAttribute | OpenAttribute


@dataclass(frozen=True)
class TableDomain:
    """Rows over public attributes: exactly ``rows`` (``replace``) or at most ``max_rows``.

    ``person`` names the column of uploads that says whose a row is; it is no attribute. Then both
    bounds count the rows that are kept: up to ``Dataset.records_per_person`` of each person.
    """

    attributes: tuple[Attribute, ...]
    class_attribute: str | None = None
    rows: int | None = None
    max_rows: int | None = None
    min_rows: int = 0
    person: str | None = None
    #: The public bound on the total number of cells of all tables of counts that are stored with
    #: one version of the records.
    level_cells: int = 1 << 22

    def attribute(self, name: str) -> Attribute:
        """The attribute called ``name``. Raises: KeyError if there is none."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}


@dataclass(frozen=True)
class PrefixDomain:
    """A sorted public list whose first k values apply; only the cut-off k is private."""

    public_values: tuple[float, ...]


Domain = GraphDomain | TableDomain | PrefixDomain


@dataclass(frozen=True)
class Dataset:
    """The public part of one dataset: everything that a price may depend on."""

    name: str
    neighbouring: NeighbouringRelation
    domain: Domain
    records_per_person: int = 1
    #: Released counts below this number are suppressed; 0 suppresses none.
    minimum_count: int = 0
