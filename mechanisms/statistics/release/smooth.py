"""Laplace noise whose scale depends on the records, but changes little between neighbours.

Danger: the scale, the smooth bound S and the run time are private. One class serves smooth
sensitivity and largest local sensitivities, which differ in S. Either way S is at least the local
sensitivity and changes by at most a factor of e^β between neighbours. For such a scale
``mechanisms.statistics.smoothness`` proves (ε, δ)-DP.
"""

from abc import abstractmethod
from fractions import Fraction
from math import ceil, log

from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.domains import Dataset
from mechanisms.model.randomness import Randomness
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import add_rounded_laplace
from mechanisms.statistics.grid import Plan, rate_at_most
from mechanisms.statistics.local_sensitivity import LEAST, SmoothBound
from mechanisms.statistics.release.added_noise import DataDependentNoise, single_noise
from mechanisms.statistics.release.mechanism import Accuracy, share
from mechanisms.statistics.smoothness import smooth_beta
from mechanisms.statistics.statistic import Measurement, Part, Statistic

#: The smooth bound S is multiplied by this, so that rounding errors never put it below the local
#: sensitivity. Rounding errors also affect the ratio of S between neighbouring datasets. For this
#: ``smoothness.SLACK`` lowers the smoothness β.
_RAISE = 1 + Fraction(1, 1 << 30)


class SmoothNoise(DataDependentNoise):
    """(ε, δ)-DP by Laplace noise of scale 2S / ε, rounded down to the grid; S is the bound."""

    widest = 2
    needs_delta = True

    @abstractmethod
    def bound(self, measured: Measurement) -> SmoothBound | None:
        """The private bound from which S is computed; None if the statistic has none."""

    def noise(
        self, measured: Measurement, plan: Plan, loss: PrivacyLoss, randomness: Randomness
    ) -> int:
        return single_noise(add_rounded_laplace, self.rate(measured, plan, loss), randomness)

    def terms(self, part: Part, dataset: Dataset, plan: Plan, loss: PrivacyLoss) -> int:
        beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
        return 1 if beta is None else part.terms(dataset, plan, beta)

    def accuracy(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Accuracy:
        accuracy = super().accuracy(statistic, dataset, loss)
        ((part, spent, _),) = self.plans(statistic, dataset, loss)
        beta = smooth_beta(spent.epsilon_nano, spent.delta_atto)
        # At d changes from records whose local sensitivity is the global one, GS, the smooth bound
        # S is at least e^{−βd}·GS. So the noise scale 2S/ε is below GS/ε only where βd > ln 2. The
        # number d is at most the public reach: from any records, so many changes suffice to come to
        # records whose local sensitivity is GS.
        far = None if beta is None else ceil(log(2) / beta)
        pays = far if far is not None and far <= part.reach(dataset) else None
        words = (
            "Laplace noise of the global sensitivity is never more than this noise."
            if pays is None
            else "It can be less than Laplace noise of the global sensitivity only for records "
            "at least `pays_beyond` changes from all on which one change moves the value most."
        )
        explanation = f"{accuracy['explanation']} {words}"
        return {**accuracy, "pays_beyond": pays, "explanation": explanation}

    def rate(self, measured: Measurement, plan: Plan, loss: PrivacyLoss) -> Rate:
        """The private rate ε / 2S. If β is too small, the global sensitivity is in place of S."""
        beta = smooth_beta(loss.epsilon_nano, loss.delta_atto)
        scale = Fraction(plan.cap)
        if beta is not None:
            bound = self.bound(measured)
            if bound is None:
                raise TypeError("this statistic does not have the bound of this mechanism")
            scale = min(scale, Fraction(max(bound.smooth(beta), LEAST)) * _RAISE)
        return rate_at_most(share(loss) / (2 * scale))


class SmoothSensitivity(SmoothNoise):
    """Takes S as the largest e^{−βs}·U(s); U(s) bounds the local sensitivity at distance s."""

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

    def bound(self, measured: Measurement) -> SmoothBound | None:
        return measured.local


class LargestLocalSensitivities(SmoothNoise):
    """Takes S as the largest LS_l·e^{−βd} of *all* levels l at distance d from that of the records.

    A level holds all datasets of equal local sensitivity LS_l.
    """

    name = "largest_local_sensitivities"
    title = "Largest local sensitivities"
    description = (
        "As smooth sensitivity, with datasets of equal local sensitivity taken together: quick "
        "where the levels are known, never less noisy. (ε, δ), for every ε."
    )
    source = "Canard, Olivier, Quertier 2017, corrected: distances run over all levels"

    def bound(self, measured: Measurement) -> SmoothBound | None:
        return measured.levels
