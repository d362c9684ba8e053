"""What a mechanism is: a statistic and a loss in, one released number out."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from accounting.composition import Step
from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.statistics.statistic import Statistic

#: Accuracy is told with this probability.
CONFIDENCE = 0.95
#: |Laplace| exceeds this many of its scales with probability 1 − CONFIDENCE.
WIDTHS = 2.9957322735539909


class Mechanism(Protocol):
    """One way to release a statistic. Everything but ``release`` is a matter of public facts."""

    @property
    def name(self) -> str:
        """The name in queries."""
        ...

    @property
    def title(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def source(self) -> str: ...

    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        """How ``loss`` is spent; the steps add up to it exactly.

        Raises: UnsupportedQuery when the statistic does not fit the dataset, or the loss exact
            arithmetic.
        """
        ...

    def accuracy(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Mapping[str, Any]:
        """What may be expected of the value: a bound that holds with probability ``CONFIDENCE``, or
        the most that a bound may come to, where it depends on the records."""
        ...

    def noise_scale(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Fraction | None:
        """The scale of the noise, where it is public."""
        ...

    def loss_reaching(self, statistic: Statistic, dataset: Dataset, error: float) -> PrivacyLoss:
        """The least loss whose public ``error`` is at most that much; UnsupportedQuery if none."""
        ...

    def release(
        self,
        statistic: Statistic,
        records: Records,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> Fraction:
        """The value. Raises: as ``steps``, before anything private is read; NoiseOverflow with
        probability below e⁻¹⁰⁰⁰. Privacy: ``loss`` under the dataset's relation."""
        ...


@lru_cache(maxsize=1024)
def share(loss: PrivacyLoss) -> Fraction:
    """ε as a rational number, at least one nano."""
    if loss.epsilon_nano < 1:
        raise UnsupportedQuery("the share of one release is less than the smallest loss, 10⁻⁹")
    return Fraction(loss.epsilon_nano, NANO)


def not_reachable() -> UnsupportedQuery:
    return UnsupportedQuery(
        "the accuracy of this mechanism depends on the records", supported={"target": []}
    )


def significant(value: float) -> float:
    """Four significant digits: predictions are bounds, not measurements."""
    return float(f"{value:.4g}")
