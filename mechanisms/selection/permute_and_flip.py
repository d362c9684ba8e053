"""Permute-and-flip, by noisy max with exponential noise."""

from collections.abc import Sequence
from fractions import Fraction

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.noise.noisy_max import noisy_max as draw_noisy_max
from mechanisms.noise.noisy_max import noisy_max_of_rows
from mechanisms.selection.checks import a_release_each, one_release
from mechanisms.selection.laws import (
    OrderedLaw,
    one_shot_probabilities,
    permute_and_flip_probabilities,
)
from mechanisms.selection.selector import Draws, Selector


class PermuteAndFlip(Selector):
    name = "permute_and_flip"
    title = "Permute-and-flip"
    description = (
        "Adds one-sided exponential noise to every score and takes the largest, which is exactly "
        "the permute-and-flip mechanism. Its expected error is never above that "
        "of the exponential mechanism and up to half of it. Several candidates are drawn either "
        "one after another, each with its share of the loss, or in one shot, as the largest of a "
        "single noisy vector; both have the same privacy loss, but different laws."
    )
    source = (
        "McKenna and Sheldon, Permute-and-Flip, NeurIPS 2020, Theorems 1 and 2; as exponential "
        "noise: Ding et al., 2021"
    )
    noisy_max = (
        "The same law as the largest of scores with one-sided exponential noise of rate ε/2."
    )
    sample = staticmethod(draw_noisy_max)
    sample_rows = staticmethod(noisy_max_of_rows)
    probabilities = staticmethod(permute_and_flip_probabilities)

    def steps(self, loss: PrivacyLoss, k: int, draws: Draws) -> tuple[Step, ...]:
        if draws == "one_shot":
            return one_release("one-shot permute-and-flip", loss, k)
        return a_release_each("permute-and-flip draw", loss, k)

    def ordered_probabilities(
        self, scores: Sequence[int], p: Fraction, k: int, draws: Draws
    ) -> OrderedLaw:
        if draws == "one_shot":
            return one_shot_probabilities(scores, p, k)
        return super().ordered_probabilities(scores, p, k, draws)

    def misses(self, n: int, k: int) -> Fraction:
        """The larger of the bounds for both values of ``draws``.

        A candidate beats one that is x better only if its noise is larger by x: ½·e^(−λx) for each
        of n − 1. In one shot, some of n noises must exceed x: n·e^(−λx).
        """
        if k == 1:
            return Fraction(n - 1, 2)
        return max(Fraction(n), Fraction(k * (n - 1), 2))
