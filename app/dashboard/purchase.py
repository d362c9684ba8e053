"""What an allowance buys: how accurate typical questions are when it pays for 1, 10 or 100.

The same prices as a quote, of public facts alone: no records are read and nothing is charged.
"""

from __future__ import annotations

from dataclasses import dataclass

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.queries import QUERY, QUERY_KINDS
from app.queries.parts.examples import TypicalQuestion
from app.queries.parts.form import Facts
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery

ANSWERS = (1, 10, 100)


@dataclass(frozen=True)
class Purchase:
    """One question, and for each number of answers its ε and accuracy, or why there is none."""

    question: str
    offers: tuple[tuple[int, str, str], ...]


def purchases(facts: Facts, public: Dataset, allowance: PrivacyLoss) -> list[Purchase]:
    """For each typical question: (answers, ε of each, what it would be like)."""
    return [
        Purchase(one.question, tuple(_offer(one, public, allowance, n) for n in ANSWERS))
        for kind in QUERY_KINDS.values()
        for one in kind.examples.typical
        if one.dataset == facts.kind
    ]


def _offer(
    typical: TypicalQuestion, public: Dataset, allowance: PrivacyLoss, answers: int
) -> tuple[int, str, str]:
    each = allowance.epsilon_nano // answers
    epsilon = PrivacyLoss(each).as_dict()["epsilon"]
    if not MIN_QUERY_EPSILON_NANO <= each <= MAX_QUERY_EPSILON_NANO:
        return answers, epsilon, "not within the range of a query"
    try:
        query = QUERY.validate_python(typical.query, strict=False)
        accuracy = query.price(public, PrivacyLoss(each)).accuracy()
    except UnsupportedQuery as refusal:
        return answers, epsilon, f"not possible: {refusal}"
    if typical.accuracy not in accuracy:
        return answers, epsilon, "accuracy is not public"
    return answers, epsilon, typical.text.format(accuracy[typical.accuracy])
