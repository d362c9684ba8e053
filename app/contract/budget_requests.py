"""Requests for budget, and decisions about them, as clients send and see them."""

from typing import Any, Literal, Self

from pydantic import model_validator

from accounting.privacy_loss import PrivacyLoss
from app.contract.amounts import Delta, Limit, LimitEpsilon
from app.contract.models import Body, Reply
from app.contract.texts import PlainText
from app.contract.times import Moment, MomentIn

REQUEST_EXAMPLES: dict[str, Any] = {
    "for a report": {
        "value": {
            "epsilon": "2",
            "purpose": "Three tables for the annual report on working hours.",
            "until": "2100-01-01T00:00:00Z",
        }
    }
}
DECISION_EXAMPLES: dict[str, Any] = {
    "grant as requested": {"value": {"decision": "grant", "reason": "As agreed."}},
    "grant less": {"value": {"decision": "grant", "epsilon": "1", "reason": "One table first."}},
    "refuse": {"value": {"decision": "refuse", "reason": "The cap is nearly spent."}},
}


class BudgetRequestIn(Body):
    """A request for budget: the whole allowance that the analyst would like to have.

    ``purpose``: at most 2,000 characters without control characters, line breaks and marks of
    direction. ``until``: from then on the allowance would take no new charge.
    """

    epsilon: LimitEpsilon
    delta: Delta = 0
    purpose: PlainText
    until: MomentIn | None = None

    @property
    def loss(self) -> PrivacyLoss:
        return PrivacyLoss(self.epsilon, self.delta)


class DecisionIn(Body):
    """The decision of an owner, with a reason of the same form as a purpose.

    An amount that is left out is as requested. ``"until": null`` grants without an end; without
    ``until`` it is the requested end, or else the one that the allowance has.
    """

    decision: Literal["grant", "refuse"]
    epsilon: LimitEpsilon | None = None
    delta: Delta | None = None
    until: MomentIn | None = None
    reason: PlainText

    @model_validator(mode="after")
    def _amounts_of_a_grant(self) -> Self:
        if self.decision == "refuse" and self.model_fields_set & {"epsilon", "delta", "until"}:
            raise ValueError("a refusal has no epsilon, delta or until")
        return self


class BudgetRequestOut(Reply):
    """One request. ``status``: `open`, `granted`, `refused` or `withdrawn`.

    ``granted``, with ``granted_until``, is the allowance of the decision. A text is null once it is
    erased. ``reason`` and ``decided`` are null before a decision.
    """

    id: str
    dataset: str
    analyst: str
    epsilon: str
    delta: str
    until: Moment | None
    purpose: str | None
    created: Moment
    status: Literal["open", "granted", "refused", "withdrawn"]
    decided: Moment | None
    granted: Limit | None
    granted_until: Moment | None
    reason: str | None
