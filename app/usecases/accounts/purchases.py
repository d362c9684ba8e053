"""The accuracy of typical queries when an allowance pays for 1, 10 or 100 of them.

Prices follow from public facts alone, as in quotes: no records are read, nothing is charged.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import MAX_QUERY_EPSILON_NANO, MIN_QUERY_EPSILON_NANO
from app.contract.descriptions import Registration, public_facts
from app.contract.errors import InvalidRequest, UnsupportedQuery
from app.identity.callers import Caller
from app.queries import QUERY, QUERY_KINDS
from app.queries.parts.examples import TypicalQuestion
from app.usecases.services import Services
from app.usecases.visibility import owned, require

#: The preview divides an allowance by these numbers of equal answers, and shows how accurate each
#: answer could be.
ANSWERS = (1, 10, 100)
#: A function of a query and a loss. Returns the quote on one dataset, with the predicted accuracy.
Pricing = Callable[[Any, PrivacyLoss], Any]


@dataclass(frozen=True)
class Offer:
    """One of ``answers`` equal answers: its ε, and in ``text`` its accuracy or why it has none."""

    answers: int
    epsilon: str
    text: str


@dataclass(frozen=True)
class Purchase:
    """A typical question, and one offer for each number in ``ANSWERS``."""

    question: str
    offers: tuple[Offer, ...]


def preview(
    services: Services, caller: Caller, dataset: str, allowance: PrivacyLoss
) -> list[Purchase]:
    """Typical questions on the caller's own dataset, and what ``allowance`` buys of each.

    Raises: NotFound; InvalidRequest while the dataset has no nodes.
    """
    require(caller, "owner")
    stored = owned(services, caller, dataset)
    public = stored.public
    if public is None:
        raise InvalidRequest.at("dataset", type="nodes", msg="it has no nodes yet")
    kind = stored.description["kind"]
    return _purchases(kind, allowance, lambda query, loss: query.price(public, loss))


def of_draft(
    services: Services, caller: Caller, registration: Registration, allowance: PrivacyLoss
) -> list[Purchase]:
    """The same for a description that is not registered; empty for a graph without its nodes."""
    del services
    require(caller, "owner")
    public = public_facts(registration)
    if public is None:
        return []
    return _purchases(registration.kind, allowance, lambda query, loss: query.price(public, loss))


def _purchases(kind: str, allowance: PrivacyLoss, price: Pricing) -> list[Purchase]:
    return [
        Purchase(one.question, tuple(_offer(one, allowance, many, price) for many in ANSWERS))
        for typical in QUERY_KINDS.values()
        for one in typical.examples.typical
        if one.dataset == kind
    ]


def _offer(typical: TypicalQuestion, allowance: PrivacyLoss, answers: int, price: Pricing) -> Offer:
    each = allowance.epsilon_nano // answers
    epsilon = PrivacyLoss(each).as_dict()["epsilon"]
    if not MIN_QUERY_EPSILON_NANO <= each <= MAX_QUERY_EPSILON_NANO:
        return Offer(answers, epsilon, "not within the range of a query")
    try:
        query = QUERY.validate_python(typical.query, strict=False)
        accuracy = price(query, PrivacyLoss(each)).accuracy()
    except UnsupportedQuery as refusal:
        return Offer(answers, epsilon, f"not possible: {refusal}")
    if typical.accuracy not in accuracy:
        return Offer(answers, epsilon, "accuracy is not public")
    return Offer(answers, epsilon, typical.text.format(accuracy[typical.accuracy]))
