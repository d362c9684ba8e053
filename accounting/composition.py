"""How the steps of one mechanism add up to the charge of its query.

A price is a list of steps. Sequential steps read the same records, so their losses add up.
Parallel steps read disjoint records, so only the largest of their losses counts. The total of a
price must equal the loss of the query exactly, to the last unit. Losses in ρ add up alike, also if
earlier releases choose the later ones.

Danger: a replaced record leaves one part and may enter another, so two parallel steps read it.
Mechanisms with parallel steps see such a change as a group of two, whose ρ is at least as large.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, Self

from accounting.privacy_loss import PrivacyLoss
from accounting.rho import LARGEST_FEMTO, Pure, RhoBound, Together

Composition = Literal["sequential", "parallel"]


#: The bound of zero on the ρ of a step of a price. It is for a part of a charge that no mechanism
#: spends, such as what is left over when a loss per person is divided by the records of a person.
#: It is also for a release whose ρ another step of the same price counts already.
NO_RELEASE = Together(())


@dataclass(frozen=True, slots=True)
class Step:
    """``times`` releases of ``loss`` each; parallel releases read disjoint records.

    ``bound``: the ρ of one release; None stands for any release that is private at ``loss``. A loss
    without a finite ε states ρ itself, of which ``bound`` is at most the part that is used.
    ``members``: the most records of one person, who is the group that the charge in ρ protects.
    """

    what: str
    loss: PrivacyLoss
    times: int = 1
    composition: Composition = "sequential"
    bound: RhoBound | None = None
    members: int = 1

    def __post_init__(self) -> None:
        if self.times < 1:
            raise ValueError(f"a step happens at least once, got {self.times} times")

    def total(self) -> PrivacyLoss:
        return self.loss * self.times if self.composition == "sequential" else self.loss

    @property
    def rho_femto(self) -> int:
        """The charge of one release in whole femto-ρ, rounded up."""
        if self.loss.unpriced:
            return self.loss.rho_femto
        return (self.bound or Pure(self.loss.epsilon())).femto(self.members)

    def total_rho(self) -> int:
        return self.rho_femto * (self.times if self.composition == "sequential" else 1)

    def for_group(self, members: int) -> Self:
        """The same step for persons with up to ``members`` times as many records."""
        loss = self.loss
        if loss.unpriced:
            loss = replace(loss, rho_femto=loss.rho_femto * members**2)
        return replace(self, loss=loss, members=self.members * members)

    def as_dict(self) -> dict[str, object]:
        return {
            "what": self.what,
            **replace(self.loss, rho_femto=self.rho_femto).as_charge(),
            "times": self.times,
            "composition": self.composition,
        }


def total(steps: Iterable[Step]) -> PrivacyLoss:
    """The loss of all steps together, by sequential composition of their totals.

    It counts as one release without a finite ε, however many of the steps have none.
    """
    whole = sum((step.total() for step in steps), PrivacyLoss(0))
    return replace(whole, unpriced=min(whole.unpriced, 1))


def total_rho(steps: Iterable[Step]) -> int:
    """The ρ of all steps together, in whole femto-ρ; beyond every limit it stays one number."""
    return min(sum(step.total_rho() for step in steps), LARGEST_FEMTO)


def for_group(steps: Iterable[Step], members: int) -> tuple[Step, ...]:
    """The same steps for persons with up to ``members`` times as many records."""
    return tuple(step.for_group(members) for step in steps)


def repeated(
    what: str,
    loss: PrivacyLoss,
    times: int,
    bound: Callable[[PrivacyLoss], RhoBound | None] = lambda _: None,
) -> tuple[Step, ...]:
    """Steps that spend ``loss`` on ``times`` equal releases; the last also gets the remainder.

    ``bound`` returns the ρ of a release that spends a share.
    """
    share, last = loss.shares(times)
    if share == last:
        return (Step(what, share, times, bound=bound(share)),)
    return (
        Step(what, share, times - 1, bound=bound(share)),
        Step(what, last, bound=bound(last)),
    )
