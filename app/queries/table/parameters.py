"""The parameters of ``table`` queries: groupings, aggregates and measured totals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from accounting.privacy_loss import NANO
from app.contract.amounts import Units
from app.contract.models import Body
from app.queries.parts.candidates import Text
from mechanisms.tables.aggregates import Aggregate, CountOf, MeanOf, QuantilesOf, SumOf, VarianceOf
from mechanisms.tables.grouping import MAX_EDGES, Chapters, Edges, Grouping, Levels
from mechanisms.tables.persons import PersonsOf

#: The share of a loss that one release gets, 0 < share ≤ 1, as a whole number of units of 10⁻⁹.
Share = Annotated[int, Units(9, 1, NANO)]
EdgeList = Annotated[tuple[float, ...], Field(min_length=2, max_length=MAX_EDGES)]
QUANTILES_DEFAULT = (0.25, 0.5, 0.75)


class GroupingBody(Body):
    """The base of the forms that divide one attribute in another way than by its levels."""

    attribute: Text

    @abstractmethod
    def grouping(self) -> Grouping:
        """Returns the grouping. Raises: ValueError that names the violated rule."""

    @model_validator(mode="after")
    def _well_formed(self) -> GroupingBody:
        self.grouping()
        return self


class ByEdges(GroupingBody):
    """Bins between other edges within the public bounds; numbers outside of them are left out."""

    edges: EdgeList

    def grouping(self) -> Grouping:
        return Edges(self.attribute, self.edges)


class ByGroups(GroupingBody):
    """Named groups of values, such as the chapters of a code book; other values are left out."""

    groups: dict[Text, tuple[Text, ...]] = Field(min_length=1, max_length=100_000)

    def grouping(self) -> Grouping:
        return Chapters(self.attribute, self.groups)


def _form_of(body: Any) -> str:
    if isinstance(body, str):
        return "attribute"
    has_groups = "groups" in body if isinstance(body, dict) else isinstance(body, ByGroups)
    return "groups" if has_groups else "edges"


#: One entry of ``by``, the grouping of a table: the name of an attribute, or an attribute with the
#: edges of intervals or with groups of values.
By = Annotated[
    Annotated[Text, Tag("attribute")]
    | Annotated[ByEdges, Tag("edges")]
    | Annotated[ByGroups, Tag("groups")],
    Discriminator(_form_of),
]


def grouping_of(by: Any) -> Grouping:
    """The grouping that one entry of ``by`` describes."""
    return Levels(by) if isinstance(by, str) else by.grouping()


AggregateName = Literal["count", "persons", "sum", "mean", "variance", "quantiles"]
#: Aggregates that count whole rows or persons, and so take no attribute.
OF_ROWS: dict[str, Callable[[], Aggregate]] = {"count": CountOf, "persons": PersonsOf}
#: Aggregates of one numeric attribute that take no other parameter.
OF_NUMBERS: dict[str, Callable[[str], Aggregate]] = {
    "sum": SumOf,
    "mean": MeanOf,
    "variance": VarianceOf,
}


class AggregateBody(Body):
    """One aggregate. ``share``: its share of the loss that the cells have; equal by default."""

    name: AggregateName
    attribute: Text | None = None
    quantiles: (
        Annotated[
            tuple[Annotated[float, Field(gt=0, lt=1)], ...], Field(min_length=1, max_length=100)
        ]
        | None
    ) = Field(default=None, description="The shares of numbers below: 0.25, 0.5, 0.75 by default.")
    edges: EdgeList | None = Field(
        default=None, description="Of `quantiles`: the edges of its counts; the bins by default."
    )
    share: Share | None = None

    @model_validator(mode="after")
    def _well_formed(self) -> AggregateBody:
        if (self.attribute is None) != (self.name in OF_ROWS):
            raise ValueError("every aggregate but count and persons has an attribute")
        for field in ("quantiles", "edges"):
            if getattr(self, field) is not None and self.name != "quantiles":
                raise ValueError(f"{field} is a field of quantiles")
        if self.attribute is not None and self.edges is not None:
            Edges(self.attribute, self.edges)
        return self

    def aggregate(self) -> Aggregate:
        """Returns the aggregate as the mechanism reads it."""
        if self.attribute is None:
            return OF_ROWS[self.name]()
        if self.name == "quantiles":
            return QuantilesOf(self.attribute, self.quantiles or QUANTILES_DEFAULT, self.edges)
        return OF_NUMBERS[self.name](self.attribute)

    def part_of_loss(self) -> Fraction | None:
        """Returns the declared share as a rational, or None."""
        return None if self.share is None else Fraction(self.share, NANO)


class MeasuredBody(Body):
    """Totals with noise of their own: lists of attributes of ``by``; ``[]`` is the grand total."""

    measured: tuple[tuple[Text, ...], ...] = Field(min_length=1, max_length=63)
    share: Annotated[int, Units(9, 1, NANO - 1)] = Field(
        description="Their share of the loss, below 1; the cells have the rest."
    )
