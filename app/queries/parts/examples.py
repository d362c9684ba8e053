"""Examples of requests and answers: for the documents, for tests and for the warm-up."""

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

#: The datasets that examples name, as their owners would register them.
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
    """A whole request, with a line that says what it is for."""

    summary: str
    request: Body


@dataclass(frozen=True)
class TypicalQuestion:
    """A question whose accuracy shows an owner what an allowance buys."""

    #: The kind of dataset that it is asked of.
    dataset: str
    question: str
    query: Body
    #: The name of the predicted accuracy, and the text that its value is shown in.
    accuracy: str
    text: str


@dataclass(frozen=True)
class Examples:
    """The examples of one kind."""

    #: One query with its request, and an answer to it.
    request: Body
    answer: Mapping[str, Any]
    #: Queries of every way through the kind's compiled code that fit a dataset.
    #: Run on small records they compile everything that a query of this kind may meet.
    every: Callable[[Dataset], Iterator[Body]]
    #: The examples of the OpenAPI document, for queries and for quotes.
    queries: Mapping[str, Example] = field(default_factory=dict)
    quotes: Mapping[str, Example] = field(default_factory=dict)
    typical: tuple[TypicalQuestion, ...] = ()


def reply(query: Query, request: Body, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The reply to ``request``, which was read as ``query``, of an allowance of ten such."""
    dataset = DATASETS[request["dataset"]]
    charge = PrivacyLoss.parse(request["epsilon"])
    return {
        "id": "0192f0c1-7c1e-7d5a-9a55-0f5b6f3f7c11",
        "status": "answered",
        "dataset": dataset.name,
        "dataset_version": 1,
        "query": request["query"],
        "charge": {**charge.as_dict(), "neighbouring": dataset.neighbouring.value},
        "remaining": (charge * 9).as_dict(),
        "steps": [step.as_dict() for step in query.price(dataset, charge).steps],
        "answer": answer,
        "receipt": "5f0c5c4c6b1d4b7e8a9f0a1b2c3d4e5f60718293a4b5c6d7e8f9010203040506",
    }
