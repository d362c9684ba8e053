"""The ladder: whole numbers around the true value, on rungs as wide as the local sensitivity.

Rung 0 is the value alone. Rung s ≥ 1 is the next U(s − 1) integers on either side; U(s) bounds
the local sensitivity at distance s. An answer on rung s is drawn with probability ∝ e^{−εs/2}. This
is ε-DP, because one change moves an answer by at most one rung. Every rung counts up to a public
one where U is the global sensitivity; one tail stands for all further rungs. To omit them costs a
δ.
"""

from math import exp, expm1, log

import numpy as np

from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import BoundedRange
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.randomness import Randomness
from mechanisms.noise.addition import Integers
from mechanisms.noise.geometric import add_geometric
from mechanisms.noise.race import weighted_race
from mechanisms.noise.rate import Rate
from mechanisms.noise.uniform import uniform
from mechanisms.statistics.grid import Plan
from mechanisms.statistics.local_sensitivity import DistanceBound
from mechanisms.statistics.release.added_noise import DataDependentNoise, depends, single_noise
from mechanisms.statistics.release.mechanism import CONFIDENCE, Accuracy, share
from mechanisms.statistics.statistic import Measurement, Statistic

_HALF = (1 << 32) - 1


class Ladder(DataDependentNoise):
    """The ladder for statistics of whole numbers; ε-DP without a δ."""

    name = "ladder"
    title = "Ladder"
    description = (
        "Draws a whole number, the less likely the more changes would be needed to reach it. Pure "
        "ε; mostly the most accurate for counts in graphs."
    )
    source = "Zhang, Cormode, Procopiuc, Srivastava, Xiao, SIGMOD 2015"

    def accuracy(self, statistic: Statistic, dataset: Dataset, loss: PrivacyLoss) -> Accuracy:
        plan = self.single(statistic, dataset, loss)
        if not plan.cap:
            return depends(0.0)
        rate = float(share(loss)) / 2
        # Rungs are ranges of whole numbers at growing distance from the true value; rung 0 is the
        # value alone. A rung has at most ``cap`` numbers on either side of the value. An answer
        # lies beyond rung r with probability at most 2·cap·e^{−λ(r + 1)} / (1 − e^{−λ}), where λ is
        # ε/2.
        rungs = max(log(2 * plan.cap / ((1 - CONFIDENCE) * -expm1(-rate))) / rate, 1.0)
        return depends((rungs + 1) * plan.cap * float(plan.step))

    def rho_bound(self, loss: PrivacyLoss, plan: Plan) -> BoundedRange:
        """One change moves every answer by at most one rung, at the rate ε/2, up or down."""
        # The ladder's answers lie on rungs, ranges of whole numbers around the true value. ``plan``
        # bounds the widths of the rungs, on which the ρ does not depend.
        del plan
        return BoundedRange(loss.epsilon())

    def noise(
        self, measured: Measurement, plan: Plan, loss: PrivacyLoss, randomness: Randomness
    ) -> int:
        if not isinstance(measured.local, DistanceBound):
            raise UnsupportedQuery("the ladder needs a local sensitivity at every distance")
        return draw(rungs(measured.local), ladder_rate(loss), randomness)


def ladder_rate(loss: PrivacyLoss) -> Rate:
    """Return λ = ε/2: an answer is less likely by the factor e^−λ per rung."""
    return Rate(loss.epsilon_nano, 2 * NANO)


def rungs(local: DistanceBound) -> Integers:
    """Return the private widths U(0), …, U(R) of rungs 1, …, R + 1 on either side of the value.

    R is the public reach of the bound. U(R) is the global sensitivity, the width of all further
    rungs.
    """
    return local.at(np.arange(local.reach + 1, dtype=np.int64))


def weights(widths: Integers) -> Integers:
    """Return the number of integers on rungs 0, …, R + 1 and, as the last, on each further rung."""
    return np.concatenate(([1], 2 * widths))


def draw(widths: Integers, rate: Rate, randomness: Randomness) -> int:
    """Draw the answer minus the true value.

    The rung is private, so the words of the tail and of the place on it are drawn for every rung.
    """
    rung = weighted_race(weights(widths), rate, randomness, tail=True)
    # A rung is a range of whole numbers on either side of the true value. All rungs from a public
    # one on are equally wide and take part in the draw as one rung. If it is drawn, a geometric
    # number of further rungs is added.
    further = single_noise(add_geometric, rate, randomness) * (rung == widths.size)
    # A rung above 0 can only be drawn if its width is at least 1. Rung 0 is the true value alone.
    # It borrows the width of rung 1, so that it consumes as many random words as any other rung and
    # the run time does not reveal it.
    width = max(int(widths[max(rung - 1, 0)]), 1)
    inner = np.where(np.arange(widths.size) < rung - 1, widths, 0)
    passed = (int((inner >> 32).sum()) << 32) + int((inner & _HALF).sum()) + further * width
    place = uniform(2 * width, randomness.stream())
    side, step = divmod(place, width)
    # Rung 0 is the true value alone, so its distance is 0.
    distance = (passed + 1 + step) * (rung > 0)
    return distance if side else -distance


def rung_probabilities(sizes: Integers, epsilon: float) -> list[float]:
    """P(rung 0), P(rung 1), … by the definition, from ``weights``; for tests.

    The last entry includes all further rungs, each of its size.
    """
    rate = epsilon / 2
    law = [int(size) * exp(-rate * s) for s, size in enumerate(sizes)]
    law[-1] /= -expm1(-rate)
    total = sum(law)
    return [mass / total for mass in law]


def ladder_probability(difference: int, widths: Integers, epsilon: float) -> float:
    """P(answer − value = difference), by the definition; for tests."""
    rung, reached = 0, 0
    while reached < abs(difference):
        reached += int(widths[min(rung, len(widths) - 1)])
        rung += 1
    # Rung 0 is the true value alone. Each whole number on rung s, the s-th range of numbers around
    # it, has the probability of the true value times e^{−εs/2}.
    return rung_probabilities(weights(widths), epsilon)[0] * exp(-epsilon / 2 * rung)
