"""The base of selectors: integer scores of sensitivity 2^q in, indices of candidates out, loss
ε."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.addition import Integers
from mechanisms.selection.accuracy import error_bound, loss_bound
from mechanisms.selection.laws import OrderedLaw

#: How k candidates are drawn: by k separate draws, each among the rest, or from one noisy vector.
Draws = Literal["peeled", "one_shot"]


class Selector(ABC):
    """One way to select. Everything except ``top`` depends on public facts alone."""

    #: The name in queries, and the name for people.
    name: str
    title: str
    #: One paragraph for the catalogue, and paper with theorem.
    description: str
    source: str
    #: The noise on the scores whose reported maximum has the same law.
    noisy_max: str

    @abstractmethod
    def steps(self, loss: PrivacyLoss, k: int, draws: Draws) -> tuple[Step, ...]:
        """The steps that spend ``loss`` on k candidates; they add up to it exactly.

        Raises: UnsupportedQuery when the loss of a draw is below 10⁻⁹ or out of the range of
            exact arithmetic on the grid of ``noise.rate.score_bits``. ValueError for k < 1.
        """

    @abstractmethod
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
        """Indices of k candidates in the order drawn, shape (k,); every draw spends its step.

        Args:
            scores: private whole numbers, shape (n,), that neighbours move by at most
                2^score_bits each, in any directions; |score| < 2⁶² by public bounds, which the
                caller has checked. A selection is k = 1.
            loss: ε of all draws together. A δ has no benefit here and is charged nevertheless.

        Raises: as ``steps``; ValueError when k > n; NoiseOverflow with probability below
            n·e⁻¹⁰²⁴, whatever the scores.
        Privacy: ε-DP under the relation that bounds the change of scores.
        """

    @abstractmethod
    def probabilities(self, scores: Sequence[int], p: Fraction) -> list[Fraction]:
        """The exact law of one draw; p = e^−λ, λ = ε / 2^{q + 1}, any rational in (0, 1)."""

    @abstractmethod
    def ordered_probabilities(
        self, scores: Sequence[int], p: Fraction, k: int, draws: Draws
    ) -> OrderedLaw:
        """The exact law of ordered answers; λ = ε / (k·2^{q + 1}), equal shares."""

    @abstractmethod
    def misses(self, n: int, k: int) -> Fraction:
        """m such that some draw misses the best by more than x with m·e^(−λx) at most."""

    def accuracy(self, n: int, loss: PrivacyLoss, k: int, confidence: float) -> float:
        """A public bound x, in units of the sensitivity, so 2^q steps of a score are 1.

        With probability ≥ ``confidence``, for every j ≤ k, the j-th drawn scores at most x below
        the j-th best.
        """
        return error_bound(self.misses(n, k), loss, k, confidence)

    def loss_for(self, n: int, error: float, k: int, confidence: float) -> PrivacyLoss:
        """The loss at which ``accuracy`` falls to ``error``, rounded up to k whole shares."""
        return loss_bound(self.misses(n, k), error, k, confidence)
