"""The base of mechanisms, each of which releases one number for a statistic and a loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.number import CONFIDENCE as CONFIDENCE
from mechanisms.model.number import Number
from mechanisms.model.work import Work
from mechanisms.statistics.statistic import Statistic

#: Laplace noise is farther than this many scales from 0 with probability 1 − CONFIDENCE.
WIDTHS = 2.9957322735539909

#: Public bounds on the error of a release, with an explanation. The price of a query shows them.
Accuracy = Mapping[str, Any]


class Mechanism(ABC):
    """One way to release a statistic. Everything except ``release`` depends on public facts."""

    #: The name of the mechanism in queries, then its title, description and source in the
    #: catalogue.
    name: str
    title: str
    description: str
    source: str
    #: True if the mechanism is private only with a δ above 0.
    needs_delta = False

    @abstractmethod
    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        """The steps that spend ``loss``; they add up to it exactly.

        Raises: UnsupportedQuery when the statistic does not fit the dataset, or when the loss is
            out of the range of exact arithmetic.
        """

    @abstractmethod
    def accuracy(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Accuracy:
        """An error bound that holds with probability ``CONFIDENCE``.

        If the error depends on the records, this is the largest bound that it may have.
        """

    def noise_scale(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Fraction | None:
        """The scale of the noise if it is public; None otherwise."""
        return None

    def loss_reaching(self, statistic: Statistic, dataset: Dataset, error: float) -> PrivacyLoss:
        """The least loss whose public error is at most ``error``. Raises: UnsupportedQuery."""
        raise UnsupportedQuery(
            "the accuracy of this mechanism depends on the records", supported={"target": []}
        )

    @abstractmethod
    def work(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Work:
        """The public work of ``release``."""

    @abstractmethod
    def release(self, statistic: Statistic, context: QueryContext) -> Fraction:
        """The released value.

        Raises: as ``steps``, before anything private is read; NoiseOverflow with probability
            below e⁻¹⁰⁰⁰.
        Privacy: ``context.loss`` under the dataset's relation.
        """

    def answer(self, statistic: Statistic, context: QueryContext) -> Answer:
        """The released value, with an interval where the law of the noise is public.

        Raises and privacy: as ``release``.
        """
        return Answer(Number(self.release(statistic, context)))


@dataclass(frozen=True)
class Answer:
    """A released value and, if several parts were released, each of these by name.

    ``origins``: the public number that was subtracted from the number of each row, by part.
    """

    number: Number
    parts: Mapping[str, Number] = field(default_factory=dict)
    origins: Mapping[str, Fraction] = field(default_factory=dict)


@lru_cache(maxsize=1024)
def share(loss: PrivacyLoss) -> Fraction:
    """Return ε as a rational number. Raises: UnsupportedQuery if it is below 10⁻⁹."""
    if loss.epsilon_nano < 1:
        raise UnsupportedQuery("the share of one release is less than the smallest loss, 10⁻⁹")
    return loss.epsilon()


def significant(value: float) -> float:
    """Round to four significant digits, because predicted errors are bounds, not measurements."""
    return float(f"{value:.4g}")
