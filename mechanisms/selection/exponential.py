"""The exponential mechanism, by a race whose work does not depend on the scores."""

from fractions import Fraction

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import BoundedRange
from mechanisms.model.work import Work
from mechanisms.noise.race import race, race_of_rows
from mechanisms.selection.checks import at_least_one, one_release
from mechanisms.selection.laws import exponential_probabilities
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
    sample = staticmethod(race)
    sample_rows = staticmethod(race_of_rows)
    probabilities = staticmethod(exponential_probabilities)

    def steps(self, loss: PrivacyLoss, k: int, draws: Draws) -> tuple[Step, ...]:
        at_least_one(k)
        return one_release("exponential mechanism", loss, k, self.rho_bound(loss, k))

    def rho_bound(self, loss: PrivacyLoss, k: int) -> BoundedRange:
        """k draws in a row, each at exactly ε/k."""
        return BoundedRange(loss.epsilon() / k, k)

    def work(self, n: int, k: int, draws: Draws) -> Work:
        return super().work(n, k, "one_shot")

    def misses(self, n: int, k: int) -> Fraction:
        """k(n − 1): a draw takes a candidate that scores x below the best with e^(−λx) at most."""
        return Fraction(k * (n - 1))
