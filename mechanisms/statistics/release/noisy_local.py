"""Noisy local sensitivity of two-triangles: a bound on LS is released under noise, then used.

Three releases at ε/3 each, τ = ln(1/δ). On whole numbers every Laplace variable is floored and
every τ-term is rounded up, so all events stay the same:

    ã = a_max + Lap(3/ε) + 3τ/ε         B = max(1, 4·⌊max(ã, 0)⌋)
    L̃ = max(1, LS + Lap(3B/ε) + 3τB/ε)  answer = f + Lap(3·L̃/ε)

Except where ã < a_max or L̃ < LS, each of probability at most δ/2, all three density ratios between
neighbours are at most e^{ε/3}. This is (ε, δ) for every ε, where the literature stops at ε ≈ 0.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

import numpy as np

from accounting.composition import Step
from accounting.privacy_loss import ATTO, PrivacyLoss
from mechanisms.model.candidates import graph_domain
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.intervals import bounds
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import rounded_laplace
from mechanisms.statistics.grid import Plan, coarse, rate_at_most
from mechanisms.statistics.release.data_dependent import DataDependentNoise, depends, needs_delta
from mechanisms.statistics.release.mechanism import WIDTHS, share
from mechanisms.statistics.statistic import Measurement, Part, Statistic


class NoisyLocalSensitivity(DataDependentNoise):
    """(ε, δ). Only the answer is published."""

    name = "noisy_local_sensitivity"
    title = "Noisy local sensitivity"
    description = (
        "Bounds the local sensitivity by a noisy number that is mostly above it, and adds Laplace "
        "noise of that scale. (ε, δ), for every ε."
    )
    source = "Karwa, Raskhodnikova, Smith, Yaroslavtsev 2011; constants corrected"

    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        part, _ = self._plan(statistic, dataset, loss)
        first, _, last = loss.split(3)
        # The guarantee is for the three together: δ belongs to the two bounds.
        bounds = PrivacyLoss(2 * first.epsilon_nano, loss.delta_atto)
        return (
            Step(f"{self.title}: two noisy bounds", bounds),
            Step(f"{self.title}: {part.what}", PrivacyLoss(last.epsilon_nano)),
        )

    def accuracy(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Mapping[str, Any]:
        _, plan = self._plan(statistic, dataset, loss)
        return depends(float(3 * plan.cap * plan.step / share(loss)) * WIDTHS + float(plan.step))

    def noise(
        self,
        measured: Measurement,
        plan: Plan,
        dataset: Dataset,
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> int:
        if measured.support is None:
            raise TypeError("this statistic has no second-order bound")
        epsilon = share(loss) / 3

        def laplace(scale: int) -> tuple[int, Rate]:
            rate, zero = rate_at_most(epsilon / scale), np.zeros(1, dtype=np.int64)
            return int(rounded_laplace(zero, rate, randomness, executor)[0]), rate

        shared, flip = measured.support
        noise, rate = laplace(1)
        above = shared + noise + margin(rate, loss.delta_atto)
        noise, rate = laplace(second_order(above, most_second_order(dataset)))
        changed = flip + noise + margin(rate, loss.delta_atto)
        # GS is a public bound on LS, and a coarser grid moves by at most its own steps.
        noise, _ = laplace(min(coarse(max(changed, 1), plan.exponent), plan.cap))
        return noise

    def _plan(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Part, Plan]:
        needs_delta(loss)
        part, plan = super()._plan(statistic, dataset, PrivacyLoss(loss.epsilon_nano // 3))
        # The largest possible scales are public: an excess is refused before any charge.
        rate_at_most(share(loss) / 3 / max(plan.cap, most_second_order(dataset), 1))
        return part, plan


def most_second_order(dataset: Dataset) -> int:
    """4·(n − 2): no flip changes LS by more, in any graph."""
    return max(4 * (graph_domain(dataset).nodes - 2), 1)


def second_order(above: int, most: int) -> int:
    """B = max(1, 4·max(ã, 0)), at most the public bound."""
    return min(max(1, 4 * max(above, 0)), most)


def margin(rate: Rate, delta_atto: int) -> int:
    """⌈ln(1/δ) / rate⌉: ⌊Laplace⌋ of this rate falls below its negative with probability δ/2."""
    from mpmath.ctx_iv import MPIntervalContext

    iv: Any = MPIntervalContext()
    iv.prec = 200
    tail = iv.log(iv.mpf(ATTO) / delta_atto) * rate.b / rate.a
    return ceil(bounds(tail)[1])
