"""How the steps of one mechanism add up to the charge of its query.

A price is a list of steps. Sequential steps read the same records, so their losses add up.
Parallel steps read disjoint records, so only the largest of their losses counts. The total of a
price must equal the loss of the query exactly, to the last unit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from accounting.privacy_loss import PrivacyLoss

Composition = Literal["sequential", "parallel"]


@dataclass(frozen=True, slots=True)
class Step:
    """``times`` releases of ``loss`` each; parallel releases read disjoint records."""

    what: str
    loss: PrivacyLoss
    times: int = 1
    composition: Composition = "sequential"

    def __post_init__(self) -> None:
        if self.times < 1:
            raise ValueError(f"a step happens at least once, got {self.times} times")

    def total(self) -> PrivacyLoss:
        return self.loss * self.times if self.composition == "sequential" else self.loss

    def as_dict(self) -> dict[str, object]:
        return {
            "what": self.what,
            **self.loss.as_dict(),
            "times": self.times,
            "composition": self.composition,
        }


def total(steps: Iterable[Step]) -> PrivacyLoss:
    """The loss of all steps together, by sequential composition of their totals."""
    return sum((step.total() for step in steps), PrivacyLoss(0))


def repeated(what: str, loss: PrivacyLoss, times: int) -> tuple[Step, ...]:
    """Steps that spend ``loss`` on ``times`` equal releases; the last also gets the remainder."""
    share, last = loss.shares(times)
    if share == last:
        return (Step(what, share, times),)
    return (Step(what, share, times - 1), Step(what, last))
