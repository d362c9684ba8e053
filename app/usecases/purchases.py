"""What an allowance buys: the accuracy of typical queries when it pays for 1, 10 or 100 of them.

The prices are those of quotes, of public facts alone: no records are read, nothing is charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.errors import InvalidRequest, UnsupportedQuery
from app.identity.callers import Caller
from app.queries import AnyQuery
from app.queries.query import Query
from app.usecases.services import Services
from app.usecases.visibility import owned, require

#: How many answers the allowance is divided by.
ANSWERS = (1, 10, 100)
QUERY: TypeAdapter[Any] = TypeAdapter(AnyQuery)
#: By kind of dataset: a question, its query, one member of its accuracy, and a text for that.
TYPICAL: Mapping[str, tuple[tuple[str, Mapping[str, Any], str, str], ...]] = {
    "graph": (
        (
            "number of edges",
            {"kind": "statistic", "statistic": "edges"},
            "error",
            "off by at most {}",
        ),
        (
            "ten nodes of highest degree",
            {
                "kind": "top_k",
                "k": 10,
                "utilities": [{"name": "degree"}],
                "sensitivity": "global",
            },
            "score_below_best",
            "each at most {} below the best left",
        ),
    ),
    "table": (
        (
            "count of records",
            {"kind": "statistic", "statistic": "count"},
            "error",
            "off by at most {}",
        ),
        (
            "decision tree of depth 3",
            {"kind": "tree", "max_depth": 3},
            "leaf_count_error",
            "counts of leaves off by at most {}",
        ),
        (
            "distances of all attributes",
            {"kind": "distance"},
            "cell_noise_scale",
            "noise of scale {} on every cell",
        ),
    ),
    "prefix": (
        (
            "smallest sum",
            {"kind": "statistic", "statistic": "smallest_sum"},
            "error",
            "off by at most {}",
        ),
    ),
}


@dataclass(frozen=True)
class Offer:
    """One of ``answers`` equal answers: its ε, and its accuracy or why there is none."""

    answers: int
    epsilon: str
    text: str


@dataclass(frozen=True)
class Purchase:
    """A typical question, and an offer for each number of answers."""

    question: str
    offers: tuple[Offer, ...]


def preview(
    services: Services, caller: Caller, dataset: str, allowance: PrivacyLoss
) -> list[Purchase]:
    """What the allowance would buy on the caller's own dataset.

    Raises: NotFound; InvalidRequest while the dataset has no nodes.
    """
    require(caller, "owner")
    stored = owned(services, caller, dataset)
    public = stored.public
    if public is None:
        raise InvalidRequest.at("dataset", type="nodes", msg="it has no nodes yet")

    def offer(body: Mapping[str, Any], member: str, text: str, answers: int) -> Offer:
        each = allowance.epsilon_nano // answers
        epsilon = PrivacyLoss(each).as_dict()["epsilon"]
        if not MIN_QUERY_EPSILON_NANO <= each <= MAX_QUERY_EPSILON_NANO:
            return Offer(answers, epsilon, "not within the range of a query")
        try:
            query: Query = QUERY.validate_python(body, strict=False)
            value = query.price(public, PrivacyLoss(each)).accuracy().get(member)
        except UnsupportedQuery as refusal:
            return Offer(answers, epsilon, f"not possible: {refusal}")
        accuracy = "accuracy is not public" if value is None else text.format(value)
        return Offer(answers, epsilon, accuracy)

    return [
        Purchase(question, tuple(offer(body, member, text, answers) for answers in ANSWERS))
        for question, body, member, text in TYPICAL[stored.description["kind"]]
    ]
