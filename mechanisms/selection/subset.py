"""The subset mechanism: k candidates as one set, by how far their scores move together."""

from __future__ import annotations

from math import ceil, log

from accounting.composition import Step
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import BoundedRange
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.joint_influence import JointInfluence
from mechanisms.model.randomness import Randomness
from mechanisms.model.work import Work, work
from mechanisms.noise.addition import Integers
from mechanisms.noise.rate import Rate
from mechanisms.noise.subset import most_rounds, subset
from mechanisms.selection.laws import subset_probabilities

#: A set of candidates is drawn by tossing one coin for each candidate, in rounds, until the right
#: number show heads. This is the largest number of candidates times rounds. A round reads about one
#: random byte per candidate.
MOST_TOSSES = 1 << 31


class Subset:
    """P(S) ∝ exp(ε·Σ_{r ∈ S} score(r)/ρ) over all sets of k candidates, ρ the spread of k.

    ε-DP, because the log of every probability ratio lies in an interval of length ε.
    """

    name = "subset"
    title = "Joint exponential mechanism"
    description = (
        "Draws the k candidates as one set, with probability proportional to exp(ε·(sum of their "
        "scores)/ρ), where ρ is how far one change moves k scores together: about 2 for an edge "
        "and 1 or 2 for counts, instead of 2k for separate draws. The answer is a set, in the "
        "public order of the candidates."
    )
    source = "The exponential mechanism (McSherry and Talwar 2007, Theorem 6) over sets"
    noisy_max = "Not a noisy maximum: independent coins, tossed until exactly k show heads."
    probabilities = staticmethod(subset_probabilities)

    def steps(self, loss: PrivacyLoss, k: int, influence: JointInfluence) -> tuple[Step, ...]:
        """One step with the whole loss.

        Raises: UnsupportedQuery, from public facts, when the loss is out of the range of exact
            arithmetic, or when the candidates times the public number of rounds are too many.
        """
        rounds = most_rounds(influence.count, k)
        if influence.count * rounds > MOST_TOSSES:
            raise UnsupportedQuery(
                "too many candidates for a set of so many: `laplace` takes the same work for any k",
                supported={"selector": "laplace", "tosses": MOST_TOSSES},
            )
        self._rate(loss, k, influence)
        return (Step("joint exponential mechanism", loss, bound=BoundedRange(loss.epsilon())),)

    def top(
        self,
        scores: Integers,
        influence: JointInfluence,
        loss: PrivacyLoss,
        k: int,
        randomness: Randomness,
    ) -> Integers:
        """Indices of k candidates in ascending order, shape (k,).

        Args:
            scores: private whole numbers, shape (n,), that move together as ``influence`` says.

        Privacy: ε-DP under the relation of ``influence``. The number of rounds follows the scores
            and is hidden by the release instant; ``noise.subset.most_rounds`` bounds it.
        """
        self.steps(loss, k, influence)
        return subset(scores, k, self._rate(loss, k, influence), randomness)

    def work(self, n: int, k: int) -> Work:
        """The public work of ``top``: rounds until k coins of n show heads."""
        return work(f"draw by {self.name}", n + most_rounds(n, k) * (n // 64 + 64))

    def accuracy(
        self, loss: PrivacyLoss, k: int, influence: JointInfluence, confidence: float
    ) -> float:
        """A public bound x in units of the sensitivity.

        With probability ≥ ``confidence`` no candidate of the set scores more than x below one that
        is not in it. Exchanging the two multiplies the probability of a set by e^(λx), and there
        are k(n − k) pairs.
        """
        spread, units = influence.spread_of(k), self._units(k, influence, confidence)
        return units * spread / influence.one * NANO / loss.epsilon_nano

    def loss_for(
        self, error: float, k: int, influence: JointInfluence, confidence: float
    ) -> PrivacyLoss:
        """The loss at which ``accuracy`` falls to ``error`` > 0."""
        spread, units = influence.spread_of(k), self._units(k, influence, confidence)
        return PrivacyLoss(max(1, ceil(units * spread / influence.one * NANO / error)))

    @staticmethod
    def _units(k: int, influence: JointInfluence, confidence: float) -> float:
        pairs = k * (influence.count - k)
        return max(0.0, log(pairs / (1 - confidence))) if pairs else 0.0

    @staticmethod
    def _rate(loss: PrivacyLoss, k: int, influence: JointInfluence) -> Rate:
        # If all candidates are selected, no coin is tossed and the noise rate does not matter. But
        # the rate is ε divided by a bound on the joint changes of scores, which is then 0, so 1
        # replaces it.
        return Rate.of_counts(loss.epsilon_nano, max(influence.spread_of(k), 1))
