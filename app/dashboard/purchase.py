"""What an allowance buys: how accurate typical questions are when it pays for 1, 10 or 100.

The same prices as a quote, of public facts alone: no records are read and nothing is charged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.dashboard.facts import Facts
from app.queries import AnyQuery
from app.queries.query import Query
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery

ANSWERS = (1, 10, 100)
QUERY: TypeAdapter[Any] = TypeAdapter(AnyQuery)
#: Of each kind of dataset some questions, and what of their accuracy says most.
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
class Purchase:
    """One question, and for each number of answers its ε and accuracy, or why there is none."""

    question: str
    offers: tuple[tuple[int, str, str], ...]


def purchases(facts: Facts, public: Dataset, allowance: PrivacyLoss) -> list[Purchase]:
    """For each typical question: (answers, ε of each, what it would be like)."""
    return [
        Purchase(question, tuple(_offer(body, said, text, public, allowance, n) for n in ANSWERS))
        for question, body, said, text in TYPICAL[facts.kind]
    ]


def _offer(
    body: Mapping[str, Any],
    said: str,
    text: str,
    public: Dataset,
    allowance: PrivacyLoss,
    answers: int,
) -> tuple[int, str, str]:
    each = allowance.epsilon_nano // answers
    shown = PrivacyLoss(each).as_dict()["epsilon"]
    if not MIN_QUERY_EPSILON_NANO <= each <= MAX_QUERY_EPSILON_NANO:
        return answers, shown, "not within the range of a query"
    try:
        query: Query = QUERY.validate_python(body, strict=False)
        value = query.price(public, PrivacyLoss(each)).accuracy().get(said)
    except UnsupportedQuery as refusal:
        return answers, shown, f"not possible: {refusal}"
    return answers, shown, text.format(value) if value is not None else "accuracy is not public"
