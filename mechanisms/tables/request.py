"""What a table is asked to hold: groupings, aggregates with their shares, and totals."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, Self

from mechanisms.model.domains import Dataset
from mechanisms.statistics.predicate import Condition, fits
from mechanisms.tables.aggregates import Aggregate, CountOf
from mechanisms.tables.grouping import Grouping
from mechanisms.tables.parts import Count, Part

#: A margin is the table of totals that keeps only these attributes, listed by name. It sums the
#: cells over all other attributes.
Margin = tuple[str, ...]


@dataclass(frozen=True)
class MeasuredTotals:
    """Margins with noise of their own, which together take ``share`` of the loss."""

    margins: tuple[Margin, ...]
    share: Fraction


@dataclass(frozen=True)
class TableRequest:
    """One table. ``shares`` holds a share of the cells' loss per aggregate, or None for equal ones.

    Raises: ValueError for attributes, columns or margins that occur twice, for shares that leave
        nothing or do not add up to 1, and for a margin over other attributes than ``by``.
    """

    by: tuple[Grouping, ...]
    aggregates: tuple[Aggregate, ...]
    shares: tuple[Fraction | None, ...]
    where: Condition = field(default_factory=lambda: {"all": []})
    totals: MeasuredTotals | Literal["sums", "none"] = "sums"
    consistent: bool = False
    non_negative: bool = False

    def __post_init__(self) -> None:
        columns = [column for one in self.aggregates for column in one.columns]
        _once(self.names, "an attribute is in by once at most")
        _once(columns, "an aggregate is listed once at most")
        declared = sum((share for share in self.shares if share is not None), Fraction(0))
        if None not in self.shares and declared != 1:
            raise ValueError("the shares of all aggregates add up to 1")
        if None in self.shares and declared >= 1:
            raise ValueError("the shares leave nothing for the other aggregates")
        _once(self.margins, "a margin is listed once at most")
        for margin in self.margins:
            _once(margin, "a margin names an attribute once at most")
            if not set(margin) < set(self.names):
                raise ValueError("a margin is over some attributes of by, but not all of them")

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes of the axes, in order."""
        return tuple(one.attribute for one in self.by)

    @property
    def margins(self) -> tuple[Margin, ...]:
        """The measured margins, each in the order of the axes."""
        if not isinstance(self.totals, MeasuredTotals):
            return ()
        order = {name: i for i, name in enumerate(self.names)}
        return tuple(
            tuple(sorted(margin, key=lambda name: order.get(name, -1)))
            for margin in self.totals.margins
        )

    def counted(self, dataset: Dataset) -> Self:
        """The request with a count, where the dataset needs one to suppress small groups."""
        return self.with_count(dataset) if dataset.minimum_count else self

    def with_count(self, dataset: Dataset) -> Self:
        """The request with a count.

        Does nothing if an aggregate already releases one. Otherwise a count is appended, and it
        takes 1/(a + 1) of the loss, where a is the number of the other aggregates. Declared shares
        of the others shrink by the same part.
        """
        if any(Count() in one.parts(dataset) for one in self.aggregates):
            return self
        own = Fraction(1, len(self.aggregates) + 1)
        shares = (None if share is None else share * (1 - own) for share in self.shares)
        return replace(self, aggregates=(*self.aggregates, CountOf()), shares=(*shares, own))

    def labels(self, dataset: Dataset) -> dict[str, tuple[str, ...]]:
        """The names of the groups of each axis. Raises: UnsupportedQuery if one does not fit."""
        fits(self.where, dataset)
        return {one.attribute: one.labels(dataset) for one in self.by}

    def weights(self, dataset: Dataset) -> Mapping[tuple[Part, Margin | None], Fraction]:
        """The share of the loss of each part in the cells (None) and in each measured margin.

        An aggregate divides its share equally among its parts. A part of several aggregates is
        measured once, with their shares together. The weights add up to 1.
        """
        rest = 1 - sum((share for share in self.shares if share is not None), Fraction(0))
        equal = rest / max(self.shares.count(None), 1)
        parts: dict[Part, Fraction] = {}
        for one, share in zip(self.aggregates, self.shares, strict=True):
            needed = one.parts(dataset)
            for part in needed:
                weight = (equal if share is None else share) / len(needed)
                parts[part] = parts.get(part, Fraction(0)) + weight
        for_margins = self.totals.share if isinstance(self.totals, MeasuredTotals) else Fraction(0)
        weights: dict[tuple[Part, Margin | None], Fraction] = {
            (part, None): weight * (1 - for_margins) for part, weight in parts.items()
        }
        for margin in self.margins:
            for part, weight in parts.items():
                weights[part, margin] = weight * for_margins / len(self.margins)
        return weights


def _once(items: tuple[object, ...] | list[str], rule: str) -> None:
    if len(set(items)) < len(items):
        raise ValueError(rule)
