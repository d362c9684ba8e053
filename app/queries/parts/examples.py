"""Examples of requests and answers for the documentation, the tests and the warm-up."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from accounting.privacy_loss import PrivacyLoss
from app.queries.parts.query import Query
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    TableDomain,
)

#: Public descriptions of the datasets that the examples name, as owners would register them.
GITHUB = Dataset("github", NeighbouringRelation.EDGE, GraphDomain(37_700, 10_000))
ADULT = Dataset(
    "adult",
    NeighbouringRelation.ADD_REMOVE,
    TableDomain(
        (
            CategoricalAttribute("sex", ("Female", "Male")),
            CategoricalAttribute("occupation", ("Craft", "Sales", "Service", "Technical")),
            CategoricalAttribute("marital_status", ("Married", "Never married", "Separated")),
            NumericAttribute("age", 0.0, 120.0, tuple(float(12 * i) for i in range(11))),
            CategoricalAttribute("income", ("<=50K", ">50K")),
        ),
        class_attribute="income",
        max_rows=100_000,
    ),
)
DATASETS: Mapping[str, Dataset] = {one.name: one for one in (GITHUB, ADULT)}

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """A complete request, with one line that states its purpose."""

    summary: str
    request: Body


@dataclass(frozen=True)
class TypicalQuestion:
    """A query whose predicted accuracy shows an owner how useful an allowance is."""

    #: The kind of dataset that the query runs on: ``graph``, ``table`` or ``prefix`` (a public list
    #: of numbers, of which a private first part applies).
    dataset: str
    question: str
    query: Body
    #: The name of the predicted accuracy, and a text in which ``{}`` stands for its value.
    accuracy: str
    text: str


def none_large(_: Dataset) -> Iterator[Body]:
    """No query of most kinds does much more than another on the same records."""
    return iter(())


def no_gaussian(_: Dataset) -> Iterator[Body]:
    """Most kinds add no Gaussian noise."""
    return iter(())


@dataclass(frozen=True)
class Examples:
    """The examples of one query kind."""

    #: One complete request, and the answer to it.
    request: Body
    answer: Mapping[str, Any]
    #: Yields queries that fit a dataset and together run all compiled code of the kind. The warm-up
    #: runs them on small records, so that no later query compiles anything.
    every: Callable[[Dataset], Iterator[Body]]
    #: Yields queries with long requests, whose work depends on the request more than on the
    #: records. The machine is timed on them with few records too, which separates the time of a
    #: call from the time that a long request adds.
    large: Callable[[Dataset], Iterator[Body]] = none_large
    #: Yields queries that add Gaussian noise, which is charged in ρ alone. The warm-up and the
    #: measurement of speeds run them, because they use other compiled code.
    gaussian: Callable[[Dataset], Iterator[Body]] = no_gaussian
    #: The examples in the OpenAPI document: of ``POST /v1/queries`` and of quotes.
    queries: Mapping[str, Example] = field(default_factory=dict)
    quotes: Mapping[str, Example] = field(default_factory=dict)
    typical: tuple[TypicalQuestion, ...] = ()
    #: Example queries that name no attribute. If the kind has no typical question for a dataset,
    #: the page of the dataset shows the first of them that fits it.
    plain: tuple[Body, ...] = ()

    def standing_for_the_kind(self, dataset_kind: str) -> Iterator[Body]:
        """The queries of which the first that fits a dataset stands for the kind."""
        yield from (one.query for one in self.typical if one.dataset == dataset_kind)
        yield from self.plain


def reply(query: Query, request: Body, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the reply to ``request``, parsed as ``query``, for an allowance of ten charges."""
    dataset = DATASETS[request["dataset"]]
    charge = PrivacyLoss.parse(request["epsilon"])
    price = query.price(dataset, charge)
    return {
        "id": "0192f0c1-7c1e-7d5a-9a55-0f5b6f3f7c11",
        "status": "answered",
        "dataset": dataset.name,
        "dataset_version": 1,
        "query": request["query"],
        "charge": {**price.charge().as_charge(), "neighbouring": dataset.neighbouring.value},
        "remaining": (charge * 9).as_dict(),
        "steps": [step.as_dict() for step in price.steps],
        "answer": {"question": query.question(dataset, 1), **answer},
        "receipt": "5f0c5c4c6b1d4b7e8a9f0a1b2c3d4e5f60718293a4b5c6d7e8f9010203040506",
    }
