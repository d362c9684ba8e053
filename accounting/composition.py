"""How the steps of one mechanism add up to the charge of its query.

A price is a list of steps. Sequential steps read the same records, so their losses add;
parallel steps read disjoint records, so the costliest branch of them is what counts. The total
of a price is exactly the loss that was asked for: no step may lose or invent a unit.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from accounting.privacy_loss import PrivacyLoss

Composition = Literal["sequential", "parallel"]


@dataclass(frozen=True, slots=True)
class Step:
    """``times`` releases of ``loss`` each; parallel ones touch disjoint records."""

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
    """``loss`` spent on ``times`` equal releases, the last taking the left-over units."""
    share, last = loss.shares(times)
    if share == last:
        return (Step(what, share, times),)
    return (Step(what, share, times - 1), Step(what, last))
