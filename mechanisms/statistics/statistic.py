"""Statistics: a number made of one or two measured parts, each on a public grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import ClassVar

from mechanisms.model.context import QueryContext
from mechanisms.model.domains import Dataset
from mechanisms.model.work import NOTHING, Work
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.local_sensitivity import LEAST, SmoothBound


@dataclass(frozen=True)
class Measurement:
    """A private value in grid steps, with private bounds on how far one change moves it.

    ``local`` is the bound for smooth sensitivity and the ladder, ``levels`` the one for largest
    local sensitivities. ``support`` serves noisy local sensitivity: the most common neighbours of a
    pair, the local sensitivity, and a public bound on how far one change moves the latter. A bound
    that no mechanism needs may be None.
    """

    value: int
    local: SmoothBound | None = None
    levels: SmoothBound | None = None
    support: tuple[int, int, int] | None = None


class Statistic(ABC):
    """A statistic with its parameters, such as the mean of one attribute."""

    #: The name of the statistic in queries, then its title, description and source in the
    #: catalogue.
    name: ClassVar[str]
    title: ClassVar[str]
    description: ClassVar[str]
    source: ClassVar[str]
    #: True if the statistic is a number of records, edges or patterns. If the released number is
    #: below the dataset's minimum count, the answer leaves it out.
    is_count: ClassVar[bool] = False

    @abstractmethod
    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        """The parts, each released at an equal share of the loss.

        A dataset without the attributes that they need is refused by ``Part.plan``.
        """

    @abstractmethod
    def raw(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        """The value before it is moved inside public bounds, from released parts alone."""

    def answer(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        """The value, computed from released parts and public facts alone."""
        return self.inside(dataset, self.raw(dataset, released))

    def limits(self, dataset: Dataset) -> tuple[Fraction, Fraction] | None:
        """The public bounds into which an answer is moved; None if there are none."""
        return None

    def inside(self, dataset: Dataset, value: Fraction) -> Fraction:
        """The number inside the limits that is closest to ``value``."""
        limits = self.limits(dataset)
        return value if limits is None else min(max(value, limits[0]), limits[1])

    def factor(self, dataset: Dataset) -> Fraction:
        """The public factor by which the only part is multiplied to give the answer."""
        return Fraction(1)


class Part(Statistic):
    """One number that one change of the records moves by at most ``cap`` steps of its plan.

    As a statistic it is its own only part, and the answer is the released number.
    """

    #: The name of this number in the steps of a query's price.
    what: str

    @abstractmethod
    def plan(self, dataset: Dataset, epsilon_nano: int) -> Plan:
        """The grid for this share of the loss, from public facts alone.

        Raises: UnsupportedQuery where the dataset has no such number.
        """

    @abstractmethod
    def measure(self, context: QueryContext, plan: Plan) -> Measurement:
        """Return the private number, from prepared records that satisfy the domain."""

    def excess(self, dataset: Dataset, plan: Plan) -> Fraction:
        """The most by which the number exceeds what is measured, because that is rounded down.

        By default the number is whole and rounded down once, to steps of at least 1.
        """
        return plan.step - 1

    def work(self, dataset: Dataset) -> Work:
        """The public work of ``measure``; none where it only reads prepared totals."""
        return NOTHING

    def form(self, dataset: Dataset) -> str:
        """The public name of the form of the bound."""
        return dataset.neighbouring

    def terms(self, dataset: Dataset, plan: Plan, beta: float | None) -> int:
        """The public number of terms of the bound that a mechanism reads.

        ``beta``: the rate of a smooth bound; None for a mechanism that reads every distance.
        """
        reach = self.reach(dataset)
        if beta is not None:
            reach = min(reach, int(log(max(plan.cap / LEAST, 1.0)) / beta) + 1)
        return reach + 1

    def reach(self, dataset: Dataset) -> int:
        """The public distance from which the bound is the global sensitivity, whatever the records.

        No records are further from some whose local sensitivity is the global one.
        """
        return 0

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        return (self,)

    def raw(self, dataset: Dataset, released: Sequence[Fraction]) -> Fraction:
        (value,) = released
        return value
