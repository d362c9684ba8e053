"""Laplace noise of the global sensitivity: it is the same for all records, so its scale is
public."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from accounting.composition import Step
from accounting.privacy_loss import NANO, PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.records import Records
from mechanisms.noise.discrete_laplace import discrete_laplace
from mechanisms.noise.rate import Rate
from mechanisms.statistics.grid import Plan, rate_at_most
from mechanisms.statistics.release.mechanism import (
    CONFIDENCE,
    WIDTHS,
    Mechanism,
    share,
    significant,
)
from mechanisms.statistics.statistic import Part, Statistic


class Laplace(Mechanism):
    """Pure ε. Discrete Laplace noise on the grid of each part, at an equal share of the loss."""

    name = "laplace"
    title = "Laplace"
    description = (
        "Adds noise of scale GS/ε, with GS the most that one change moves the statistic in any "
        "dataset. A statistic of two parts gives each half of the loss."
    )
    source = "Dwork, McSherry, Nissim, Smith 2006; Ghosh, Roughgarden, Sundararajan 2009"

    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        return tuple(
            Step(f"Laplace noise: {part.what}", spent)
            for part, spent, _, _ in self._parts(statistic, dataset, loss)
        )

    def accuracy(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Mapping[str, Any]:
        scale = self.noise_scale(statistic, dataset, loss)
        if scale is None:
            return {
                "confidence": CONFIDENCE,
                "parts": [
                    {"what": part.what, "error": significant(_error(plan, rate))}
                    for part, _, plan, rate in self._parts(statistic, dataset, loss)
                ],
                "explanation": (
                    "With this probability each part is within its `error` of the true one; that "
                    "of the value made of them depends on the records."
                ),
            }
        return {
            "confidence": CONFIDENCE,
            "error": significant(float(scale) * WIDTHS),
            "noise_scale": significant(float(scale)),
            "explanation": (
                "With this probability the value is within `error` of the true one: 0 ± `error` "
                "is a confidence interval of the noise, which does not depend on the records."
            ),
        }

    def noise_scale(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Fraction | None:
        parts = self._parts(statistic, dataset, loss)
        if len(parts) != 1:
            return None
        (_, _, plan, rate) = parts[0]
        scale = Fraction(0) if rate is None else _scale(plan, rate)
        # The answer's factor scales the noise too, and two answers would reveal it.
        return scale * statistic.factor(dataset)

    def loss_reaching(self, statistic: Statistic, dataset: Dataset, error: float) -> PrivacyLoss:
        one = PrivacyLoss(NANO)
        scale = self.noise_scale(statistic, dataset, one)
        if scale is None:
            return super().loss_reaching(statistic, dataset, error)
        # Scales are rounded up by at most a factor of 1 + 2⁻²⁰.
        return PrivacyLoss(max(1, ceil(float(scale) * WIDTHS * (1 + 2e-6) * NANO / error)))

    def release(
        self,
        statistic: Statistic,
        records: Records,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> Fraction:
        released = []
        for part, _, plan, rate in self._parts(statistic, dataset, loss):
            value = part.measure(records, dataset, plan, executor).value
            if rate is not None:
                zero = np.zeros(1, dtype=np.int64)
                value += int(discrete_laplace(zero, rate, randomness, executor)[0])
            released.append(value * plan.step)
        return statistic.answer(dataset, released)

    def _parts(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> list[tuple[Part, PrivacyLoss, Plan, Rate | None]]:
        """Each part with its share, grid and rate; a constant part has no rate."""
        parts = statistic.parts(dataset)
        planned = []
        for part, spent in zip(parts, loss.split(len(parts)), strict=True):
            share(spent)  # refuses what is less than the smallest loss
            plan = part.plan(dataset, spent.epsilon_nano)
            planned.append((part, spent, plan, _rate(spent, plan.cap) if plan.cap else None))
        return planned


@lru_cache(maxsize=1024)
def _rate(spent: PrivacyLoss, cap: int) -> Rate:
    return rate_at_most(share(spent) / cap)


@lru_cache(maxsize=1024)
def _scale(plan: Plan, rate: Rate) -> Fraction:
    return plan.step / rate.exponent()


def _error(plan: Plan, rate: Rate | None) -> float:
    return 0.0 if rate is None else float(_scale(plan, rate)) * WIDTHS
