"""Noisy local sensitivity of two-triangles: a bound on LS is released under noise, then used.

Let f be the value, LS its local sensitivity, a_max the most common neighbours of a pair of nodes,
τ = ln(1/δ) and Lap(b) Laplace noise of scale b. There are three releases at ε/3 each. Laplace noise
is rounded down and terms with τ are rounded up to whole numbers, which changes no event:

    ã = a_max + Lap(3/ε) + 3τ/ε         B = max(1, 4·⌊max(ã, 0)⌋)
    L̃ = max(1, LS + Lap(3B/ε) + 3τB/ε)  answer = f + Lap(3·L̃/ε)

Except where ã < a_max or L̃ < LS, each of probability at most δ/2, all three density ratios between
neighbours are at most e^{ε/3}. This is (ε, δ)-DP for every ε; published proofs end at ε ≈ 0.6.
"""

from math import ceil

from accounting.composition import NO_RELEASE, Step
from accounting.privacy_loss import ATTO, PrivacyLoss
from accounting.rho import Pure
from mechanisms.model.domains import Dataset
from mechanisms.model.randomness import Randomness
from mechanisms.noise.intervals import bounds, intervals
from mechanisms.noise.rate import Rate
from mechanisms.noise.rounded_laplace import add_rounded_laplace
from mechanisms.statistics.graphs import most_second_order
from mechanisms.statistics.grid import Plan, coarse, rate_at_most
from mechanisms.statistics.release.added_noise import DataDependentNoise, Plans, single_noise
from mechanisms.statistics.release.mechanism import share
from mechanisms.statistics.statistic import Measurement, Part, Statistic


class NoisyLocalSensitivity(DataDependentNoise):
    """(ε, δ)-DP for two-triangles. The answer is published, and the noisy bounds are not."""

    name = "noisy_local_sensitivity"
    title = "Noisy local sensitivity"
    description = (
        "Bounds the local sensitivity by a noisy number that is mostly above it, and adds Laplace "
        "noise of that scale. (ε, δ), for every ε."
    )
    source = "Karwa, Raskhodnikova, Smith, Yaroslavtsev 2011; constants corrected"

    widest = 3
    needs_delta = True

    def steps(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> tuple[Step, ...]:
        ((part, _, _),) = self.plans(statistic, dataset, loss)
        first, _, last = loss.split(3)
        # The mechanism releases two noisy bounds and then the answer. These three releases are (ε,
        # δ)-DP only together. The price of the query has one step for the two bounds and one for
        # the answer, and shows the whole δ at the first.
        bounds = PrivacyLoss(2 * first.epsilon_nano, loss.delta_atto)
        # Only the answer is published. Its step counts the ρ of all three releases: that of any
        # release that is private at the whole loss, as the three are together. So the step of the
        # two bounds counts no ρ of its own.
        together = Pure(loss.epsilon())
        return (
            Step(f"{self.title}: two noisy bounds", bounds, bound=NO_RELEASE),
            Step(f"{self.title}: {part.what}", PrivacyLoss(last.epsilon_nano), bound=together),
        )

    def noise(
        self, measured: Measurement, plan: Plan, loss: PrivacyLoss, randomness: Randomness
    ) -> int:
        if measured.support is None:
            raise TypeError("this statistic has no second-order bound")
        epsilon = share(loss) / 3

        def laplace(scale: int) -> tuple[int, Rate]:
            rate = rate_at_most(epsilon / scale)
            return single_noise(add_rounded_laplace, rate, randomness), rate

        shared, flip, most = measured.support
        noise, rate = laplace(1)
        above = shared + noise + margin(rate, loss.delta_atto)
        noise, rate = laplace(second_order(above, most))
        changed = flip + noise + margin(rate, loss.delta_atto)
        # The noisy bound and the public global sensitivity both bound the local sensitivity, so the
        # noise scale follows from the smaller one. Both are rounded up to grid steps.
        noise, _ = laplace(min(coarse(max(changed, 1), plan.exponent), plan.cap))
        return noise

    def terms(self, part: Part, dataset: Dataset, plan: Plan, loss: PrivacyLoss) -> int:
        return 1

    def plans(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Plans:
        third = PrivacyLoss(loss.epsilon_nano // 3, loss.delta_atto)
        ((part, _, plan),) = super().plans(statistic, dataset, third)
        # Called only for its error: it refuses a noise scale that is too large. The largest
        # possible scale is public, so this happens before any charge.
        rate_at_most(share(loss) / 3 / max(plan.cap, most_second_order(dataset), 1))
        return [(part, loss, plan)]


def second_order(above: int, most: int) -> int:
    """Return B = max(1, 4·max(ã, 0)), at most the public bound ``most``; ``above`` is ã."""
    return min(max(1, 4 * max(above, 0)), most)


def margin(rate: Rate, delta_atto: int) -> int:
    """Return t = ⌈ln(1/δ) / rate⌉: rounded Laplace noise is below −t with probability ≤ δ/2."""
    iv = intervals(200)
    tail = iv.log(iv.mpf(ATTO) / delta_atto) * rate.b / rate.a
    return ceil(bounds(tail)[1])
