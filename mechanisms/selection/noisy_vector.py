"""All scores with noise, released as one vector of which the k largest are shown."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import expm1, log

from accounting.composition import Step
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import GaussianNoise, LaplaceNoise
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.executor import Executor
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.randomness import Randomness
from mechanisms.model.work import Work, times, together, work
from mechanisms.noise.addition import Integers
from mechanisms.noise.discrete_gaussian import GAUSSIAN_WORK, Deviation, discrete_gaussian
from mechanisms.noise.discrete_laplace import discrete_laplace, likely_error
from mechanisms.noise.gaussian_sums import MOST_PLACES, half_width
from mechanisms.noise.order import largest_in_public_order
from mechanisms.noise.rate import Rate


@dataclass(frozen=True)
class NoisyScores:
    """The indices of the k largest noisy scores, largest first, and these scores in steps."""

    indices: Integers
    values: Integers


class NoisyVector:
    """Discrete Laplace noise on every score, of rate ε / L1 of the whole vector's change.

    A loss in ρ alone takes discrete Gaussian noise of σ² = Q/(2ρ), Q the sum of squares of that
    change. Its work does not depend on the scores, and is the same for every k.
    """

    name = "laplace"
    title = "Noisy vector"
    description = (
        "Adds discrete Laplace noise to all scores and shows the k largest, in order and with "
        "their noisy values. The scale follows how far one change moves all scores together: 2 "
        "for degrees, and 1 or 2 for counts, whatever k is. The interval of a value holds for all "
        "candidates at once, hence for the selected ones, whose noise tends to be upwards."
    )
    source = "Dwork, McSherry, Nissim, Smith 2006; discrete noise: Ghosh et al. 2009"
    noisy_max = "The largest of scores with two-sided noise."

    def steps(self, loss: PrivacyLoss, influence: JointInfluence) -> tuple[Step, ...]:
        """One step with the whole loss. Raises: UnsupportedQuery when it is out of range."""
        if loss.unpriced:
            squares = influence.squares
            gaussian = GaussianNoise(self.deviation(loss, influence).square, squares)
            return (Step("Gaussian noise on the vector of all scores", loss, bound=gaussian),)
        rate = self.rate(loss, influence).exponent()
        bound = LaplaceNoise(rate, influence.total, influence.one)
        return (Step("noisy vector of all scores", loss, bound=bound),)

    def top(
        self,
        scores: Integers,
        influence: JointInfluence,
        loss: PrivacyLoss,
        k: int,
        randomness: Randomness,
        executor: Executor,
    ) -> NoisyScores:
        """The k largest of ``scores`` plus noise; equal noisy scores in the public order.

        Args:
            scores: private whole numbers, shape (n,), that move together as ``influence`` says.

        Privacy: ε-DP under the relation of ``influence``, for all n noisy scores together; ρ-zCDP
            for a loss in ρ alone.
        """
        if loss.unpriced:
            noisy = discrete_gaussian(scores, self.deviation(loss, influence), randomness, executor)
        else:
            noisy = discrete_laplace(scores, self.rate(loss, influence), randomness, executor)
        indices = largest_in_public_order(noisy, k)
        return NoisyScores(indices, noisy[indices])

    def work(self, n: int, loss: PrivacyLoss) -> Work:
        """The public work of ``top`` with n candidates."""
        drawn = work(f"draw by {self.name}", n)
        if not loss.unpriced:
            return drawn
        return together(times(drawn, GAUSSIAN_WORK), work("widths of sums", MOST_PLACES))

    def error(self, loss: PrivacyLoss, influence: JointInfluence, confidence: float) -> int:
        """The steps within which all noisy scores together are of the true ones."""
        if loss.unpriced:
            miss = Fraction(-expm1(log(confidence) / influence.count))
            return half_width(self.deviation(loss, influence), 1, miss)
        return likely_error(self.rate(loss, influence), confidence, influence.count)

    def accuracy(
        self, loss: PrivacyLoss, k: int, influence: JointInfluence, confidence: float
    ) -> float:
        """As ``Subset.accuracy``: two noises of at most ``error`` can hide twice as much."""
        if k == influence.count:
            return 0.0
        return 2 * self.error(loss, influence, confidence) / influence.one

    def loss_for(
        self, error: float, k: int, influence: JointInfluence, confidence: float
    ) -> PrivacyLoss:
        """The least loss at which ``accuracy`` is at most ``error`` > 0."""

        def reached(nano: int) -> bool:
            try:
                return self.accuracy(PrivacyLoss(nano), k, influence, confidence) <= error
            except UnsupportedQuery:
                return False  # Noise in exact arithmetic needs a larger ε.

        low, high = 0, NANO
        while not reached(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return PrivacyLoss(high)

    @staticmethod
    def deviation(loss: PrivacyLoss, influence: JointInfluence) -> Deviation:
        """σ for a loss in ρ alone. Raises: UnsupportedQuery for scores on a finer grid than 1."""
        if influence.one != 1:
            raise UnsupportedQuery(
                "rho takes scores in whole units, such as counts and degrees",
                supported={"sensitivity": "global", "selector": "laplace"},
            )
        return Deviation.of(loss.rho_femto, influence.squares)

    @staticmethod
    def rate(loss: PrivacyLoss, influence: JointInfluence) -> Rate:
        return Rate.of_counts(loss.epsilon_nano, influence.total)
