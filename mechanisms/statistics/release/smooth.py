"""Laplace noise whose scale follows the records as slowly as β* requires.

The scale, S and the run time are private. One class serves smooth sensitivity and largest local
sensitivities, which differ in the bound S. Either way S ≥ LS and S changes by at most e^β between
neighbours, so Theorem A of ``mechanisms.statistics.smoothness`` holds.
"""

from abc import abstractmethod
from fractions import Fraction

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.randomness import Randomness
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import add_rounded_laplace
from mechanisms.statistics.grid import Plan, rate_at_most
from mechanisms.statistics.local_sensitivity import LEAST, SmoothBound
from mechanisms.statistics.release.added_noise import DataDependentNoise, single_noise
from mechanisms.statistics.release.mechanism import share
from mechanisms.statistics.smoothness import smooth_beta
from mechanisms.statistics.statistic import Measurement

#: S is computed in doubles and raised by this factor, so it stays above LS; β allows for it.
_RAISE = 1 + Fraction(1, 1 << 30)


class SmoothNoise(DataDependentNoise):
    """(ε, δ). ⌊Laplace of scale 2S / ε⌋ on the grid."""

    widest = 2
    needs_delta = True

    @abstractmethod
    def bound(self, measured: Measurement) -> SmoothBound:
        """The private bound from which S is computed."""

    def noise(
        self, measured: Measurement, plan: Plan, loss: PrivacyLoss, randomness: Randomness
    ) -> int:
        return single_noise(add_rounded_laplace, self.rate(measured, plan, loss), randomness)

    def rate(self, measured: Measurement, plan: Plan, loss: PrivacyLoss) -> Rate:
        """1 / scale, private: ε / 2S, or from the public GS where β* is too small."""
        beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
        scale = Fraction(plan.cap)
        if beta is not None:
            smooth = max(self.bound(measured).smooth(beta), LEAST)
            scale = min(scale, Fraction(smooth) * _RAISE)
        return rate_at_most(share(loss) / (2 * scale))


class SmoothSensitivity(SmoothNoise):
    """S(x) = max over distances s of e^{−βs}·U(x, s)."""

    name = "smooth_sensitivity"
    title = "Smooth sensitivity"
    description = (
        "Adds Laplace noise of scale 2S/ε, with S a bound on what one change moves the statistic "
        "near these records, smoothed so that it tells little itself. (ε, δ), for every ε."
    )
    source = (
        "Nissim, Raskhodnikova, Smith, Smooth Sensitivity and Sampling, 2007; β by the exact "
        "divergence of Laplace pairs"
    )

    def bound(self, measured: Measurement) -> SmoothBound:
        if measured.local is None:
            raise TypeError("this statistic has no local sensitivity")
        return measured.local


class LargestLocalSensitivities(SmoothNoise):
    """S(k) = max over levels l of LS_l·e^{−β·d(k, l)}, d over *all* levels."""

    name = "largest_local_sensitivities"
    title = "Largest local sensitivities"
    description = (
        "As smooth sensitivity, with datasets of equal local sensitivity taken together: quick "
        "where the levels are known, never less noisy. (ε, δ), for every ε."
    )
    source = "Canard, Olivier, Quertier 2017, corrected: distances run over all levels"

    def bound(self, measured: Measurement) -> SmoothBound:
        if measured.levels is None:
            raise TypeError("the levels of this statistic are not known")
        return measured.levels
