"""Noise added to the parts of a statistic, and the base of mechanisms whose noise depends on the
records.

Danger: the scale of data-dependent noise and its run time are private. Neither is published, and no
target of accuracy is accepted.
"""

from abc import abstractmethod
from fractions import Fraction

import numpy as np

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import Pure, RhoBound
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.randomness import Randomness
from mechanisms.model.work import Work, together, work
from mechanisms.noise.addition import Kernel, add_noise_in_blocks, block_size
from mechanisms.noise.rate import Rate
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.release.mechanism import (
    CONFIDENCE,
    WIDTHS,
    Accuracy,
    Mechanism,
    share,
    significant,
)
from mechanisms.statistics.statistic import Measurement, Part, Statistic

#: The parts of a statistic to release, such as the sum and the count of a mean. Each has its share
#: of the privacy loss and its grid for that share.
Plans = list[tuple[Part, PrivacyLoss, Plan]]


class AddedNoise(Mechanism):
    """Releases the value of each part plus ``noise``, at an equal share of the loss."""

    #: The name of the noise in the steps of a query's price. If it is empty, the title of the
    #: mechanism is shown.
    noun = ""

    @abstractmethod
    def noise(
        self, measured: Measurement, plan: Plan, loss: PrivacyLoss, randomness: Randomness
    ) -> int:
        """Draw the noise of the value in grid steps; ``plan.cap`` is above 0."""

    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        noun = self.noun or self.title
        plans = self.plans(statistic, dataset, loss)
        return tuple(
            Step(f"{noun}: {part.what}", spent, bound=self.rho_bound(spent, plan))
            for part, spent, plan in plans
        )

    def rho_bound(self, loss: PrivacyLoss, plan: Plan) -> RhoBound:
        """The ρ of one part; by default that of any release which is private at ``loss``."""
        # This bound on ρ follows from the loss alone. Mechanisms whose noise has a public rate
        # override it with a smaller bound, which follows from ``plan``.
        del plan
        return Pure(loss.epsilon())

    def release(self, statistic: Statistic, context: QueryContext) -> Fraction:
        plans = self.plans(statistic, context.dataset, context.loss)
        return statistic.answer(context.dataset, self.released(plans, context))

    def released(self, plans: Plans, context: QueryContext) -> list[Fraction]:
        """The noisy value of each part. Raises and privacy: as ``release``."""
        released = []
        for part, spent, plan in plans:
            measured = part.measure(context, plan)
            noise = self.noise(measured, plan, spent, context.randomness) if plan.cap else 0
            released.append((measured.value + noise) * plan.step)
        return released

    def plans(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Plans:
        """The parts to release, from public facts alone. Raises: as ``Mechanism.steps``."""
        parts = statistic.parts(dataset)
        plans = []
        for part, spent in zip(parts, loss.split(len(parts)), strict=True):
            share(spent)  # Called only for its error: it refuses a part whose ε is below 10⁻⁹.
            plans.append((part, spent, part.plan(dataset, spent.epsilon_nano)))
        return plans


class DataDependentNoise(AddedNoise):
    """Releases the value of one part; the noise depends on the records."""

    #: The scale of the noise is at most this many times the global sensitivity divided by ε.
    widest = 1

    def accuracy(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Accuracy:
        plan = self.single(statistic, dataset, loss)
        scale = float(self.widest * plan.cap * plan.step / share(loss))
        return depends(scale * WIDTHS + float(plan.step))

    def work(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Work:
        ((part, spent, plan),) = self.plans(statistic, dataset, loss)
        kind = f"{self.name} {statistic.name} {part.form(dataset)}"
        bound = work(kind, self.terms(part, dataset, plan, spent))
        return together(part.work(dataset), bound)

    def terms(self, part: Part, dataset: Dataset, plan: Plan, loss: PrivacyLoss) -> int:
        """The public number of terms that the noise reads of the bound of the part."""
        return part.terms(dataset, plan, None)

    def single(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Plan:
        """The grid of a statistic of one part."""
        ((_, _, plan),) = self.plans(statistic, dataset, loss)
        return plan

    def plans(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Plans:
        if self.needs_delta and not loss.delta_atto:
            raise UnsupportedQuery("this mechanism needs delta", supported={"delta": "above 0"})
        share(loss)
        if len(statistic.parts(dataset)) != 1:
            raise UnsupportedQuery("this mechanism releases statistics of one part")
        return super().plans(statistic, dataset, loss)


def single_noise(kernel: Kernel, rate: Rate, randomness: Randomness) -> int:
    """Draw one value of the noise that ``kernel`` adds."""
    value = np.zeros(1, dtype=np.int64)
    add_noise_in_blocks(kernel, value, rate, randomness.stream(), block_size(1))
    return int(value[0])


def depends(most: float) -> Accuracy:
    """The accuracy of noise that depends on the records; ``most`` bounds the error."""
    return {
        "confidence": CONFIDENCE,
        "error_at_most": significant(most),
        "explanation": (
            "The noise depends on the records, so its size is not published: with this probability "
            "the value is within at most `error_at_most` of the true one, and mostly far closer."
        ),
    }
