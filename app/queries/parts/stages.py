"""Selection in stages: a shortlist by scores that pay at a small ε, then the best of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pydantic import Field, model_validator

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from app.contract.models import Body
from app.queries.parts.metric import Share, exact
from mechanisms.model.candidates import Candidates
from mechanisms.model.context import QueryContext
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.objectives import Objective
from mechanisms.selection import SUBSET
from mechanisms.selection.automatic import second_sensitivity
from mechanisms.selection.split import SHORTLIST_SHARE, split_at
from mechanisms.selection.top_k import Plan, select_set

#: The most candidates that the first stage may put on the shortlist.
MAX_SHORTLIST = 1000


#: The default part of ε that draws the shortlist, if the request names the size of the shortlist.
HALF = 0.5
_BEST_OF_SHORTLIST = "Out of a shortlist, the order of the utilities themselves counts."


class Stages(Body):
    """A shortlist is drawn with a part of ε, and the answer out of it with the rest.

    The two parts compose sequentially, so the second stage may depend on the shortlist.
    """

    shortlist: int | None = Field(
        default=None,
        ge=1,
        le=MAX_SHORTLIST,
        description=(
            "The candidates on the shortlist. By default a public rule of ε and k chooses them and "
            "their share, or a single stage where that finds more."
        ),
    )
    share: Share | None = Field(
        default=None,
        description="The part of ε spent on a shortlist of a named size: by default a half.",
    )

    @model_validator(mode="before")
    @classmethod
    def _half(cls, fields: Any) -> Any:
        # Danger: a retry is recognised by the text of its request, and stored texts contain the
        # share of ε that draws the shortlist. So a request without this share gets the default
        # here.
        if not isinstance(fields, Mapping) or fields.get("share") is not None:
            return fields
        return fields if fields.get("shortlist") is None else {**fields, "share": HALF}

    @model_validator(mode="after")
    def _share_of_a_size(self) -> Stages:
        if self.share is not None and self.shortlist is None:
            raise ValueError("the share of `stages` is that of a shortlist whose size is named")
        return self

    @property
    def division(self) -> Division | None:
        """The division of ε that is named, or None where the public rule divides it."""
        if self.shortlist is None or self.share is None:
            return None
        return Division(self.shortlist, exact(self.share))


@dataclass(frozen=True)
class Division:
    """How many candidates a shortlist holds, and the part of ε that draws it."""

    size: int
    share: Fraction

    def loss_for(self, second: PrivacyLoss) -> PrivacyLoss:
        """The least loss that leaves at least ``second`` to the second stage."""
        whole = int(second.epsilon_nano / (1 - self.share)) + 1
        while PrivacyLoss(whole - 1).divided(self.share)[1].epsilon_nano >= second.epsilon_nano:
            whole -= 1
        return PrivacyLoss(whole)


@dataclass(frozen=True)
class Route:
    """The public route of a selection at some loss.

    ``division`` is None for a single stage, and ``sensitivity`` where ``auto`` names it, which then
    has its own reason.
    """

    division: Division | None = None
    sensitivity: Sensitivity | None = None
    reason: str | None = None


def route_of(
    stages: Stages | None,
    named: Sensitivity | None,
    ranking: str,
    k: int,
    loss: PrivacyLoss,
    count: int,
) -> Route:
    """The route of a selection of k out of ``count`` by ``ranking``, from public facts alone.

    ``named``: the sensitivity that the request names, or None for ``auto``.
    """
    if stages is None:
        return Route(sensitivity=named)
    if stages.division is not None:
        if named is not None:
            return Route(stages.division, named)
        return Route(stages.division, second_sensitivity(ranking), _BEST_OF_SHORTLIST)
    split = split_at(ranking, k, loss, count)
    if split is None:
        return Route()
    size = split.shortlist(k)
    division = None if size is None else Division(size, SHORTLIST_SHARE)
    return Route(division, second_sensitivity(ranking), split.reason)


@dataclass(frozen=True)
class Shortlist:
    """The public facts of a shortlist: its size, its loss, how it is scored, and its plan."""

    size: int
    loss: PrivacyLoss
    sensitivity: Sensitivity
    plan: Plan

    def as_dict(self) -> dict[str, str]:
        """What quotes and answers say of it, beside its loss among the steps."""
        return {"shortlist": str(self.size), "shortlist_sensitivity": self.sensitivity.value}

    def steps(self) -> tuple[Step, ...]:
        """The step that spends the loss. Raises: as ``Subset.steps``."""
        (one,) = SUBSET.steps(self.loss, self.size, self.plan.influence)
        return (replace(one, what=f"shortlist: {one.what}"),)

    def score_below_best(self, confidence: float) -> float:
        """How far below one that is left out a candidate of the shortlist may score."""
        return SUBSET.accuracy(self.loss, self.size, self.plan.influence, confidence)

    def draw(self, context: QueryContext, candidates: Candidates, objective: Objective) -> Integers:
        """The shortlist as indices in ascending order, shape (size,).

        Privacy: the loss of the shortlist; ``Subset`` has the law. The answer does not show it.
        """
        at_share = context.at(self.loss)
        return select_set(at_share, candidates, objective, self.sensitivity, self.size)
