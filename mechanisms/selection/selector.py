"""What a selector is: integer scores of sensitivity 2^q in, indices of candidates out, loss ε."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, Protocol

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.addition import Integers
from mechanisms.selection.laws import Ordered

#: How k candidates are drawn: k fresh draws, each among the rest, or all from one noisy vector.
Draws = Literal["peeled", "one_shot"]


class Selector(Protocol):
    """One way to select. Everything but ``top`` is a matter of public facts."""

    @property
    def name(self) -> str:
        """The name in queries."""
        ...

    @property
    def title(self) -> str:
        """The name as people say it."""
        ...

    @property
    def description(self) -> str:
        """One paragraph for the catalogue."""
        ...

    @property
    def source(self) -> str:
        """Paper and theorem."""
        ...

    @property
    def noisy_max(self) -> str:
        """Which noise on the scores, of which the largest is reported, has the same law."""
        ...

    def steps(self, loss: PrivacyLoss, k: int, draws: Draws) -> tuple[Step, ...]:
        """How ``loss`` is spent on k candidates; the steps add up to it exactly.

        Raises: UnsupportedQuery when the loss of a draw is below 10⁻⁹ or out of the range of
            exact arithmetic on the grid that ``noise.rate.score_bits`` gives; ValueError, k < 1.
        """
        ...

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
            loss: ε of all draws together; a δ buys nothing here and is charged all the same.

        Raises: as ``steps``; ValueError when k > n; NoiseOverflow with probability below
            n·e⁻¹⁰²⁴, whatever the scores.
        Privacy: ε-DP under the relation that bounds the change of scores.
        """
        ...

    def probabilities(self, scores: Sequence[int], p: Fraction) -> list[Fraction]:
        """The exact law of one draw; p = e^−λ, λ = ε / 2^{q + 1}, any rational in (0, 1)."""
        ...

    def ordered_probabilities(
        self, scores: Sequence[int], p: Fraction, k: int, draws: Draws
    ) -> Ordered:
        """The exact law of ordered answers; λ = ε / (k·2^{q + 1}), equal shares."""
        ...

    def accuracy(self, n: int, loss: PrivacyLoss, k: int, confidence: float) -> float:
        """A public bound x: with probability ≥ ``confidence`` the j-th drawn, for every j ≤ k,
        scores at most x below the j-th best. In units of the sensitivity, so 2^q steps are 1."""
        ...

    def loss_for(self, n: int, error: float, k: int, confidence: float) -> PrivacyLoss:
        """The loss at which ``accuracy`` falls to ``error``, rounded up to k whole shares."""
        ...
