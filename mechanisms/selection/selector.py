"""The base of selectors: integer scores of sensitivity 2^q in, indices of candidates out, loss ε.

The public bounds on how far below the best a selected candidate may score are for information only.
Every draw runs at λ = ε / 2k per unit of sensitivity, or at λ = ε / k for one-way scores; its share
ε/k is rounded down to 10⁻⁹. Let m·e^(−λx) bound the chance that *some* draw takes a candidate more
than x below the best that remains. Then x = ln(m / (1 − confidence))/λ is exceeded with probability
at most 1 − confidence. If no draw does so, the j-th drawn is within x of the j-th best, because
only j − 1 candidates are gone by then.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, log
from typing import Literal

import numpy as np

from accounting.composition import Step
from accounting.privacy_loss import NANO, PrivacyLoss
from accounting.rho import Pure, RhoBound
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.model.work import Work, work
from mechanisms.noise.addition import Integers
from mechanisms.noise.rate import Rate
from mechanisms.selection.checks import enough
from mechanisms.selection.laws import Law, OrderedLaw, peeled_probabilities

#: How k candidates are drawn: by k separate draws, each among the remaining candidates
#: (``peeled``), or from one noisy vector (``one_shot``).
Draws = Literal["peeled", "one_shot"]


class Selector(ABC):
    """One way to select. Everything except ``sample`` and ``top`` depends on public facts alone."""

    #: The name of the selector in queries, and its title for people.
    name: str
    title: str
    #: The paragraph about this selector in the catalogue, and the paper with the theorem on which
    #: it rests.
    description: str
    source: str
    #: A sentence for the catalogue on an equivalent mechanism. It names noise for the scores with
    #: which the candidate of the largest noisy score has the same probabilities as a draw of this
    #: selector.
    noisy_max: str
    #: Draws k indices together from private scores at a noise rate, such as ``noise.race.race``.
    sample: Callable[[Integers, int, Rate, Randomness, Executor], Integers]
    #: Draws one index from each row of a table of scores. Each row is a selection of its own, with
    #: the law of ``sample`` at k = 1.
    sample_rows: Callable[[Integers, Rate, Randomness], Integers]
    #: The exact probabilities of one draw as a function of p = e^−λ, any rational number in (0, 1).
    #: The noise rate is λ = ε / 2^(q + 1) for scores with q binary digits after the point.
    probabilities: Law

    @abstractmethod
    def steps(self, loss: PrivacyLoss, k: int, draws: Draws) -> tuple[Step, ...]:
        """The steps that spend ``loss`` on k candidates; they add up to it exactly.

        Raises: UnsupportedQuery when the loss of a draw is below 10⁻⁹ or out of the range of
            exact arithmetic on the grid of ``noise.rate.score_bits``. ValueError for k < 1.
        """

    def rho_bound(self, loss: PrivacyLoss, k: int) -> RhoBound:
        """The ρ of one release of k candidates at ``loss``; by default that of any ε-DP release."""
        del k  # ``loss`` covers all k candidates together, so the bound on ρ does not depend on k.
        return Pure(loss.epsilon())

    def top(
        self,
        scores: Integers,
        score_bits: int,
        loss: PrivacyLoss,
        k: int,
        draws: Draws,
        randomness: Randomness,
        executor: Executor,
        *,
        one_way: bool = False,
    ) -> Integers:
        """Indices of k candidates in the order drawn, shape (k,); every draw spends its step.

        Args:
            scores: private whole numbers, shape (n,), that neighbours move by at most
                2^score_bits each, in any directions; |score| < 2⁶² by public bounds, which the
                caller has checked. A selection is k = 1.
            one_way: True if between any two neighbours all scores rise (or stay), or all fall, by
                at most 2^score_bits. The same law then costs half the loss.
            loss: ε of all draws together. A δ has no benefit here and is charged nevertheless.

        Raises: as ``steps``; ValueError when k > n.
        Privacy: ε-DP under the relation that bounds the change of scores.
        """
        enough(k, scores.size)
        shares = [step.loss for step in self.steps(loss, k, draws) for _ in range(step.times)]
        if len(shares) == 1:
            rate = Rate.of(loss.epsilon_nano, score_bits, k, one_way=one_way)
            return self.sample(scores, k, rate, randomness, executor)
        rest, own = np.arange(scores.size, dtype=np.int64), scores.copy()
        drawn = np.empty(k, dtype=np.int64)
        for j, share in enumerate(shares):
            rate = Rate.of(share.epsilon_nano, score_bits, one_way=one_way)
            (place,) = self.sample(own, 1, rate, randomness, executor)
            drawn[j] = rest[place]
            # The last candidate moves to the position of the drawn one, which is thus removed
            # without shifting the others. The order of the candidates changes no probability.
            rest[place], own[place] = rest[-1], own[-1]
            rest, own = rest[:-1], own[:-1]
        return drawn

    def ordered_probabilities(
        self, scores: Sequence[int], p: Fraction, k: int, draws: Draws
    ) -> OrderedLaw:
        """The exact law of ordered answers; λ = ε / (k·2^{q + 1}), equal shares."""
        return peeled_probabilities(self.probabilities, scores, p, k)

    def work(self, n: int, k: int, draws: Draws) -> Work:
        """The public work of ``top`` with n candidates."""
        calls = k if draws == "peeled" else 1
        return work(f"draw by {self.name}", calls * n, calls)

    @abstractmethod
    def misses(self, n: int, k: int) -> Fraction:
        """m: some draw scores more than x below the best with probability m·e^(−λx) at most."""

    def accuracy(
        self, n: int, loss: PrivacyLoss, k: int, confidence: float, *, one_way: bool = False
    ) -> float:
        """A public bound x, in units of the sensitivity, so 2^q steps of a score are 1.

        With probability ≥ ``confidence``, for every j ≤ k, the j-th drawn scores at most x below
        the j-th best.
        """
        units = self._units(n, k, confidence)
        share = loss.epsilon_nano // k
        if share < 1:
            raise ValueError("a bound needs a positive share of the loss for every draw")
        return _changes(one_way) * units * NANO / share

    def loss_for(
        self, n: int, error: float, k: int, confidence: float, *, one_way: bool = False
    ) -> PrivacyLoss:
        """The loss at which ``accuracy`` falls to ``error`` > 0, rounded up to k whole shares."""
        if not error > 0:
            raise ValueError(f"the error must be positive, got {error}")
        units = self._units(n, k, confidence)
        return PrivacyLoss(max(1, ceil(_changes(one_way) * units * NANO / error))) * k

    def _units(self, n: int, k: int, confidence: float) -> float:
        """λ·x for x of ``accuracy``, or zero if m of ``misses`` is already below 1 − confidence."""
        enough(k, n)
        misses = self.misses(n, k)
        if not 0 < confidence < 1:
            raise ValueError(f"the confidence lies between 0 and 1, got {confidence}")
        return max(0.0, log(misses / Fraction(1 - confidence))) if misses else 0.0


def _changes(one_way: bool) -> int:
    """How many units two scores move apart between neighbours at most."""
    return 1 if one_way else 2
