"""Laplace noise whose scale follows the records as slowly as β* lets it.

One class serves smooth sensitivity and largest local sensitivities: they differ in how S is found.
Either way S ≥ LS and S changes by at most e^β between neighbours, so Theorem A of
``mechanisms.statistics.smoothness`` holds; scale, S and running time are private.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import rounded_laplace
from mechanisms.statistics.grid import Plan, rate_at_most
from mechanisms.statistics.local import LEAST, Smooth
from mechanisms.statistics.release.hidden import Hidden, depends, needs_delta
from mechanisms.statistics.release.mechanism import WIDTHS, share
from mechanisms.statistics.smoothness import smooth_beta
from mechanisms.statistics.statistic import Measured, Part, Statistic

#: S is computed in doubles and raised by this much, so it stays above LS; β has room for it.
_RAISE = 1 + Fraction(1, 1 << 30)


class SmoothNoise(Hidden):
    """⌊Laplace of scale 2S / ε⌋ on the grid. Implements ``Mechanism``; (ε, δ)."""

    @abstractmethod
    def bound(self, measured: Measured) -> Smooth:
        """What S is made of; private."""

    def accuracy(
        self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss
    ) -> Mapping[str, Any]:
        _, plan = self._plan(statistic, dataset, loss)
        return depends(float(2 * plan.cap * plan.step / share(loss)) * WIDTHS + float(plan.step))

    def noise(
        self,
        measured: Measured,
        plan: Plan,
        dataset: Dataset,  # noqa: ARG002
        loss: PrivacyLoss,
        randomness: Randomness,
        executor: Executor,
    ) -> int:
        rate, zero = self.rate(measured, plan, loss), np.zeros(1, dtype=np.int64)
        return int(rounded_laplace(zero, rate, randomness, executor)[0])

    def rate(self, measured: Measured, plan: Plan, loss: PrivacyLoss) -> Rate:
        """1 / scale, private: ε / 2S, or of the public GS where β* leaves no room."""
        beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
        scale = Fraction(plan.cap)
        if beta is not None:
            found = max(self.bound(measured).smooth(beta), LEAST)
            scale = min(scale, Fraction(found) * _RAISE)
        return rate_at_most(share(loss) / (2 * scale))

    def _plan(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Part, Plan]:
        needs_delta(loss)
        return super()._plan(statistic, dataset, loss)


@dataclass(frozen=True)
class SmoothSensitivity(SmoothNoise):
    """S(x) = max over distances s of e^{−βs}·U(x, s)."""

    name: str = "smooth_sensitivity"
    title: str = "Smooth sensitivity"
    description: str = (
        "Adds Laplace noise of scale 2S/ε, with S a bound on what one change moves the statistic "
        "near these records, smoothed so that it tells little itself. (ε, δ), for every ε."
    )
    source: str = (
        "Nissim, Raskhodnikova, Smith, Smooth Sensitivity and Sampling, 2007; β by the exact "
        "divergence of Laplace pairs"
    )

    def bound(self, measured: Measured) -> Smooth:
        if measured.local is None:
            raise TypeError("this statistic has no local sensitivity")
        return measured.local


@dataclass(frozen=True)
class LargestLocalSensitivities(SmoothNoise):
    """S(k) = max over levels l of LS_l·e^{−β·d(k, l)}, d over *all* levels."""

    name: str = "largest_local_sensitivities"
    title: str = "Largest local sensitivities"
    description: str = (
        "As smooth sensitivity, with datasets of equal local sensitivity taken together: quick "
        "where the levels are known, never less noisy. (ε, δ), for every ε."
    )
    source: str = "Canard, Olivier, Quertier 2017, corrected: distances run over all levels"

    def bound(self, measured: Measured) -> Smooth:
        if measured.levels is None:
            raise TypeError("the levels of this statistic are not known")
        return measured.levels
