"""The candidates of a selection as the contract writes them."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from app.contract.models import Body
from app.queries.parts.sentences import counted, listing
from mechanisms.model.candidates import AllNodes, Candidates
from mechanisms.model.domains import Dataset, TableDomain
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Utility

#: Names of attributes and levels are registered at most this long.
Text = Annotated[str, Field(max_length=1000)]


class CandidateBody(Body):
    """How a request writes candidates of one kind."""

    @abstractmethod
    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:
        """So many of them in ``place``, and what they are compared by, if that is a class."""

    @abstractmethod
    def over(self, dataset: Dataset) -> Candidates:
        """The candidates of a dataset. Raises: UnsupportedQuery."""


class Nodes(CandidateBody):
    """All nodes of a graph."""

    nodes: Literal["all"] = "all"

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:  # noqa: ARG002
        return f"{_several(count, 'node')} of {place}", ""

    def over(self, dataset: Dataset) -> Candidates:  # noqa: ARG002 - the same for every graph
        return AllNodes()


class AttributeList(CandidateBody):
    """Attributes of a table, scored by what they say about a class attribute.

    The class attribute is the registered one unless it is named.
    """

    attributes: tuple[Text, ...] = Field(min_length=2, max_length=10_000)
    class_attribute: Text | None = None

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:
        subject = f"{_several(count, 'attribute')} of {place}, out of {listing(self.attributes)},"
        return subject, f" about {class_of(dataset, self.class_attribute)}"

    def over(self, dataset: Dataset) -> Candidates:
        try:
            return Attributes(self.attributes, class_of(dataset, self.class_attribute))
        except ValueError as error:  # The class attribute may be one that the dataset names.
            raise UnsupportedQuery(str(error)) from None


class AttributeValues(CandidateBody):
    """The public levels of one attribute: its values or bins, and its missing level."""

    values_of: Text

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:  # noqa: ARG002
        return f"{_several(count, 'value')} of {self.values_of} in {place}", ""

    def over(self, dataset: Dataset) -> Candidates:  # noqa: ARG002 - named, not looked up
        return ValuesOf(self.values_of)


class TreeList(CandidateBody):
    """Public decision trees, chosen between by their private rates."""

    trees: tuple[dict[str, Any], ...] = Field(min_length=2, max_length=1000)
    class_attribute: Text | None = None
    positive_class: Text

    @model_validator(mode="after")
    def _well_formed(self) -> TreeList:
        # The shape of trees needs no dataset: what is wrong with it is wrong with the body.
        Trees(self.trees, self.class_attribute or "", self.positive_class)
        return self

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:
        subject = f"{_several(count, 'decision tree')} out of {len(self.trees)}, on {place},"
        of = class_of(dataset, self.class_attribute)
        return subject, f" for the value {self.positive_class} of {of}"

    def over(self, dataset: Dataset) -> Candidates:
        return Trees(self.trees, class_of(dataset, self.class_attribute), self.positive_class)


def _which(body: Any) -> str | None:
    """The kind of candidates by the one member that only this kind has."""
    has = body.__contains__ if isinstance(body, dict) else partial(hasattr, body)
    return next(filter(has, ("nodes", "attributes", "values_of", "trees")), None)


CandidateList = Annotated[
    Annotated[Nodes, Tag("nodes")]
    | Annotated[AttributeList, Tag("attributes")]
    | Annotated[AttributeValues, Tag("values_of")]
    | Annotated[TreeList, Tag("trees")],
    Discriminator(
        _which,
        custom_error_type="candidates",
        custom_error_message="one of nodes, attributes, values_of or trees is required",
    ),
]

#: By kind: how a request writes candidates, and what they are.
CANDIDATES: dict[str, tuple[type[CandidateBody], str]] = {
    AllNodes.kind: (Nodes, AllNodes.description),
    Attributes.kind: (AttributeList, Attributes.description),
    ValuesOf.kind: (AttributeValues, ValuesOf.description),
    Trees.kind: (TreeList, Trees.description),
}


def _several(count: int, noun: str) -> str:
    return noun if count == 1 else counted(count, noun)


def class_of(dataset: Dataset, named: str | None) -> str:
    """The class attribute that the query names, or else the registered one."""
    if named is not None:
        return named
    domain = dataset.domain
    if isinstance(domain, TableDomain) and domain.class_attribute is not None:
        return domain.class_attribute
    raise UnsupportedQuery(
        "the dataset has no class attribute of its own: name one",
        supported={"candidates": "class_attribute"},
    )


def utilities_of(kind: str, neighbouring: str) -> list[Utility]:
    """The utilities that compare candidates of a kind under the relation of a dataset."""
    return [
        one
        for one in UTILITIES.values()
        if one.candidates == kind and neighbouring in one.relations
    ]
