"""One part under noise that depends on the records: the common part of three mechanisms.

Danger: the scale of such noise and its run time are private. Neither is published, and no target of
accuracy is accepted.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Any

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.release.mechanism import CONFIDENCE, Mechanism, share, significant
from mechanisms.statistics.statistic import Measurement, Part, Statistic


class DataDependentNoise(Mechanism):
    """Releases the value of one part plus ``noise``."""

    @abstractmethod
    def noise(
        self,
        measured: Measurement,
        plan: Plan,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> int:
        """The noise of the value, in steps of the plan, whose ``cap`` is above 0."""

    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        part, _ = self._plan(statistic, dataset, loss)
        return (Step(f"{self.title}: {part.what}", loss),)

    def release(
        self,
        statistic: Statistic,
        records: Records,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> Fraction:
        part, plan = self._plan(statistic, dataset, loss)
        measured = part.measure(records, dataset, plan, executor)
        value = measured.value
        if plan.cap:
            value += self.noise(measured, plan, dataset, loss, randomness, executor)
        return statistic.answer(dataset, [value * plan.step])

    def _plan(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Part, Plan]:
        """The only part and its grid, from public facts; raises as ``Mechanism.steps``."""
        share(loss)
        parts = statistic.parts(dataset)
        if len(parts) != 1:
            raise UnsupportedQuery("this mechanism releases statistics of one part")
        return parts[0], parts[0].plan(dataset, loss.epsilon_nano)


def needs_delta(loss: PrivacyLoss) -> None:
    """Raise UnsupportedQuery unless δ > 0."""
    if not loss.delta_atto:
        raise UnsupportedQuery("this mechanism needs delta", supported={"delta": "above 0"})


def depends(most: float) -> dict[str, Any]:
    """The accuracy of noise that depends on the records."""
    return {
        "confidence": CONFIDENCE,
        "error_at_most": significant(most),
        "explanation": (
            "The noise depends on the records, so its size is not published: with this probability "
            "the value is within at most `error_at_most` of the true one, and mostly far closer."
        ),
    }
