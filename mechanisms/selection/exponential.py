"""The exponential mechanism, by a race whose work does not depend on the scores."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.addition import Integers
from mechanisms.noise.race import race
from mechanisms.noise.rate import Rate
from mechanisms.selection.checks import enough, one_release
from mechanisms.selection.laws import OrderedLaw, exponential_probabilities, peeled_probabilities
from mechanisms.selection.selector import Draws, Selector


class Exponential(Selector):
    """One race draws all k candidates in order, for either value of ``draws``.

    Its law is that of k draws without replacement (Plackett–Luce), each at exactly ε/k.
    """

    name = "exponential"
    title = "Exponential mechanism"
    description = (
        "Draws a candidate with probability proportional to exp(ε·score / 2). Several candidates "
        "come from one race, in order of arrival, which has exactly the law of drawing one after "
        "another without replacement at equal shares; peeled and one-shot are therefore the same."
    )
    source = "McSherry and Talwar, Mechanism Design via Differential Privacy, 2007, Theorem 6"
    noisy_max = "The same law as the largest of scores with Gumbel noise of scale 2/ε."

    def steps(self, loss: PrivacyLoss, k: int, draws: Draws) -> tuple[Step, ...]:
        return one_release("exponential mechanism", loss, k)

    def top(
        self,
        scores: Integers,
        score_bits: int,
        loss: PrivacyLoss,
        k: int,
        draws: Draws,
        randomness: Randomness,
        executor: Executor,
    ) -> Integers:
        enough(k, scores.size)
        self.steps(loss, k, draws)
        rate = Rate.of(loss.epsilon_nano, score_bits, k)
        return race(scores, k, rate, randomness, executor)

    def probabilities(self, scores: Sequence[int], p: Fraction) -> list[Fraction]:
        return exponential_probabilities(scores, p)

    def ordered_probabilities(
        self, scores: Sequence[int], p: Fraction, k: int, draws: Draws
    ) -> OrderedLaw:
        return peeled_probabilities(exponential_probabilities, scores, p, k)

    def misses(self, n: int, k: int) -> Fraction:
        """Each of k draws takes each of n − 1 candidates x below the best with e^(−λx) at most."""
        enough(k, n)
        return Fraction(k * (n - 1))
