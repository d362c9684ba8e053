"""The forms in which a request writes the candidates of a selection."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from app.contract.models import Body
from app.queries.parts.sentences import counted, listing
from mechanisms.model.candidates import AllNodes, Candidates
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.table_candidates import Attributes, Trees, ValuesOf, table_domain
from mechanisms.utilities import UTILITIES
from mechanisms.utilities.utility import Utility

#: The name of an attribute or of a level (one of its values). Registration refuses longer names.
Text = Annotated[str, Field(max_length=1000)]


class CandidateBody(Body):
    """The base of the forms in which a request writes candidates of one kind."""

    @abstractmethod
    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:
        """Returns the subject of a question ("node of github"), and " for the class …" or ""."""

    @abstractmethod
    def over(self, dataset: Dataset) -> Candidates:
        """Returns the candidates. Raises: UnsupportedQuery if they do not fit the dataset."""


class Nodes(CandidateBody):
    """All nodes of a graph."""

    nodes: Literal["all"] = "all"

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:  # noqa: ARG002
        return f"{_several(count, 'node')} of {place}", ""

    def over(self, dataset: Dataset) -> Candidates:  # noqa: ARG002 - the same for every graph
        return AllNodes()


class AttributeList(CandidateBody):
    """Attributes of a table, scored by how well they predict a class attribute.

    Without ``class_attribute``, the class attribute is the one registered with the dataset.
    """

    attributes: tuple[Text, ...] = Field(min_length=2, max_length=10_000)
    class_attribute: Text | None = None

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:
        subject = f"{_several(count, 'attribute')} of {place}, out of {listing(self.attributes)},"
        return subject, f" about {class_of(dataset, self.class_attribute)}"

    def over(self, dataset: Dataset) -> Candidates:
        try:
            return Attributes(self.attributes, class_of(dataset, self.class_attribute))
        except ValueError as error:
            # A request may list the dataset's class attribute as a candidate, which ``Attributes``
            # refuses.
            raise UnsupportedQuery(str(error)) from None


class AttributeValues(CandidateBody):
    """The public levels of one attribute: its values or bins, and the level for missing values."""

    values_of: Text

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:  # noqa: ARG002
        return f"{_several(count, 'value')} of {self.values_of} in {place}", ""

    def over(self, dataset: Dataset) -> Candidates:  # noqa: ARG002 - the name is enough
        return ValuesOf(self.values_of)


class TreeList(CandidateBody):
    """Public decision trees. A selection compares them by true positive and negative rates."""

    trees: tuple[dict[str, Any], ...] = Field(min_length=2, max_length=1000)
    class_attribute: Text | None = None
    positive_class: Text

    @model_validator(mode="after")
    def _well_formed(self) -> TreeList:
        # Faults in the shape of trees are found without a dataset, so they are reported as errors
        # of the request.
        Trees(self.trees, self.class_attribute or "", self.positive_class)
        return self

    def phrase(self, dataset: Dataset, place: str, count: int) -> tuple[str, str]:
        subject = f"{_several(count, 'decision tree')} of the {len(self.trees)} given, on {place},"
        of = class_of(dataset, self.class_attribute)
        return subject, f" for the value {self.positive_class} of {of}"

    def over(self, dataset: Dataset) -> Candidates:
        return Trees(self.trees, class_of(dataset, self.class_attribute), self.positive_class)


def _which(body: Any) -> str | None:
    """Returns the kind of candidates, found by the one field that only this kind has."""
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

#: For each kind of candidates: the model of its form in a request, and its description.
CANDIDATES: dict[str, tuple[type[CandidateBody], str]] = {
    AllNodes.kind: (Nodes, AllNodes.description),
    Attributes.kind: (AttributeList, Attributes.description),
    ValuesOf.kind: (AttributeValues, ValuesOf.description),
    Trees.kind: (TreeList, Trees.description),
}


def _several(count: int, noun: str) -> str:
    return noun if count == 1 else counted(count, noun)


def class_of(dataset: Dataset, named: str | None) -> str:
    """Returns the class attribute in the query, or else the one registered with the dataset."""
    if named is not None:
        return named
    domain = table_domain(dataset)
    if domain.class_attribute is not None:
        return domain.class_attribute
    raise UnsupportedQuery(
        "the dataset has no class attribute of its own: name one",
        supported={"class_attribute": [one.name for one in domain.attributes]},
    )


def utilities_of(kind: str, neighbouring: str) -> list[Utility]:
    """Returns the utilities for candidates of this kind under this neighbouring relation."""
    return [
        one
        for one in UTILITIES.values()
        if one.candidates == kind and neighbouring in one.relations
    ]
