"""How one attribute divides the rows of a table: into its values, its bins, or declared groups.

The labels follow from the public description and the request, never from records. So a group
without any row is a group like all others.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from mechanisms.kernels.cells import Axis, bins
from mechanisms.model.domains import Dataset, NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.open_domain import OpenAttribute
from mechanisms.model.records import TableRecords
from mechanisms.model.table_candidates import attribute_named
from mechanisms.model.work import NOTHING, Work, together, work
from mechanisms.statistics.predicate import level_parts
from mechanisms.statistics.tables import numeric

#: The most edges of the bins by which one numeric attribute is grouped. The codes of its bins, and
#: two more for numbers outside of them and missing ones, then fit 16 bits.
MAX_EDGES = 1 << 15


@dataclass(frozen=True)
class Grouping(ABC):
    """The groups of one attribute, which no row meets twice."""

    attribute: str

    @abstractmethod
    def labels(self, dataset: Dataset) -> tuple[str, ...]:
        """The names of the groups, at least one. Raises: UnsupportedQuery if it does not fit."""

    @abstractmethod
    def axis(self, records: TableRecords, dataset: Dataset) -> Axis:
        """The groups as the counting engine reads them."""

    @property
    def comparisons(self) -> int:
        """The comparisons that find the group of one row, at least 1."""
        return 1

    def is_of_levels(self, dataset: Dataset) -> bool:
        """True if all rows of a level are in one group, so that counts of levels are enough."""
        return True

    def work(self, dataset: Dataset) -> Work:
        """The public work of ``labels`` and ``axis`` besides that on each group."""
        return NOTHING


@dataclass(frozen=True)
class Levels(Grouping):
    """Every public level is a group: values, bins of numbers, and the missing level."""

    def labels(self, dataset: Dataset) -> tuple[str, ...]:
        return attribute_named(dataset, self.attribute).levels

    def axis(self, records: TableRecords, dataset: Dataset) -> Axis:
        codes, count = records.codes[self.attribute], len(self.labels(dataset))
        return Axis(lambda rows: codes[rows], np.arange(count, dtype=np.int64), count)


@dataclass(frozen=True)
class Chapters(Grouping):
    """Named groups of levels, such as the chapters of a code book; other levels are left out.

    Raises: ValueError if a level is in two groups or twice in one, or if there is no group.
    """

    groups: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        levels = [level for group in self.groups.values() for level in group]
        if not self.groups:
            raise ValueError("there is at least one group")
        if len(set(levels)) < len(levels):
            raise ValueError("a value is in one group at most")

    def labels(self, dataset: Dataset) -> tuple[str, ...]:
        places = _places(self.attribute, dataset)
        if not all(level in places for group in self.groups.values() for level in group):
            raise UnsupportedQuery(
                f"a value is not in the domain of attribute {self.attribute}",
                supported={"groups": list(islice(places, 100))},
            )
        return tuple(self.groups)

    def work(self, dataset: Dataset) -> Work:
        levels = level_parts(len(_places(self.attribute, dataset)))
        listed = sum(map(len, self.groups.values()))
        return together(work("listed values", listed), work("parts of conditions", levels))

    def axis(self, records: TableRecords, dataset: Dataset) -> Axis:
        places = _places(self.attribute, dataset)
        groups = np.full(len(places), -1, np.int64)
        for number, group in enumerate(self.groups.values()):
            groups[[places[level] for level in group]] = number
        codes = records.codes[self.attribute]
        return Axis(lambda rows: codes[rows], groups, len(self.groups))


@dataclass(frozen=True)
class Edges(Grouping):
    """Bins [e₀, e₁), … of a numeric attribute, the last one closed, then its missing level.

    Numbers outside of the edges are left out. With ``missing`` false so are missing cells.
    Raises: ValueError unless two to ``MAX_EDGES`` edges ascend.
    """

    edges: tuple[float, ...]
    missing: bool = True

    @property
    def comparisons(self) -> int:
        """The search of a number among the edges halves them."""
        return len(self.edges).bit_length()

    def is_of_levels(self, dataset: Dataset) -> bool:
        *edges, upper = self._checked(dataset).edges
        # The requested bins of a numeric attribute include the upper edge of the last one. If this
        # is an inner edge of the public bins, rows at the edge belong to the next public bin. So
        # stored counts by public bin answer only requests that end at the uppermost public edge.
        return self.edges[-1] == upper and set(self.edges[:-1]) <= set(edges)

    def __post_init__(self) -> None:
        if not 2 <= len(self.edges) <= MAX_EDGES:
            raise ValueError(f"there are 2 to {MAX_EDGES} edges")
        if any(low >= high for low, high in zip(self.edges, self.edges[1:], strict=False)):
            raise ValueError("edges ascend")

    def labels(self, dataset: Dataset) -> tuple[str, ...]:
        attribute = self._checked(dataset)
        missing = attribute.missing if self.missing else None
        return replace(attribute, edges=self.edges, missing=missing).levels

    def axis(self, records: TableRecords, dataset: Dataset) -> Axis:
        attribute, count = self._checked(dataset), len(self.edges) - 1
        codes, numbers = records.codes[self.attribute], records.values[self.attribute]
        # A missing number is stored as the middle of the attribute's bounds, so only its code shows
        # that it is missing.
        last = len(attribute.levels) - 1 if attribute.missing is not None else -1
        edges = np.array(self.edges, np.float64)

        def places(rows: slice) -> np.ndarray[tuple[int], np.dtype[np.uint16]]:
            return np.where(codes[rows] == last, count + 1, bins(numbers[rows], edges)).astype(
                np.uint16
            )

        has_missing = self.missing and attribute.missing is not None
        groups = np.arange(count + 2, dtype=np.int64)
        groups[count:] = -1, count if has_missing else -1
        return Axis(places, groups, count + has_missing)

    def _checked(self, dataset: Dataset) -> NumericAttribute:
        attribute = numeric(dataset, self.attribute)
        if self.edges[0] < attribute.lower or self.edges[-1] > attribute.upper:
            raise UnsupportedQuery(
                "edges lie within the public bounds",
                supported={"bounds": [attribute.lower, attribute.upper]},
            )
        return attribute


def _places(name: str, dataset: Dataset) -> Mapping[str, int]:
    """The code of each level. Raises: UnsupportedQuery for an open attribute."""
    attribute = attribute_named(dataset, name)
    return attribute.levels if isinstance(attribute, OpenAttribute) else attribute.places
