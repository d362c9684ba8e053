"""Selection in two stages: a shortlist by scores that pay at a small ε, then the best of it."""

from dataclasses import dataclass, replace

from pydantic import Field

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from app.contract.models import Body
from app.queries.parts.metric import Share, exact
from mechanisms.model.candidates import Candidates
from mechanisms.model.context import QueryContext
from mechanisms.model.sensitivity import Integers, Sensitivity
from mechanisms.objectives import Objective
from mechanisms.selection import SUBSET
from mechanisms.selection.top_k import Plan, select_set

#: The most candidates that the first stage may put on the shortlist.
MAX_SHORTLIST = 1000


class Stages(Body):
    """A shortlist is drawn with a part of ε, and the answer out of it with the rest.

    The two parts compose sequentially, so the second stage may depend on the shortlist.
    """

    shortlist: int = Field(ge=1, le=MAX_SHORTLIST, description="The candidates on the shortlist.")
    share: Share = Field(default=0.5, description="The part of ε spent on the shortlist.")

    def losses(self, loss: PrivacyLoss) -> tuple[PrivacyLoss, PrivacyLoss]:
        """The loss of the shortlist, rounded down, and that of the second stage."""
        return loss.divided(exact(self.share))

    def loss_for(self, second: PrivacyLoss) -> PrivacyLoss:
        """The least loss that leaves at least ``second`` to the second stage."""
        whole = int(second.epsilon_nano / (1 - exact(self.share))) + 1
        while self.losses(PrivacyLoss(whole - 1))[1].epsilon_nano >= second.epsilon_nano:
            whole -= 1
        return PrivacyLoss(whole)


@dataclass(frozen=True)
class Shortlist:
    """The public facts of a shortlist: its size, its loss, how it is scored, and its plan."""

    size: int
    loss: PrivacyLoss
    sensitivity: Sensitivity
    plan: Plan

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
