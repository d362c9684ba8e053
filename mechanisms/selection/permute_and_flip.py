"""Permute-and-flip, by geometric noisy max."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from mechanisms.model.executor import Executor
from mechanisms.model.randomness import Randomness
from mechanisms.noise.addition import Integers
from mechanisms.noise.noisy_max import noisy_max
from mechanisms.noise.rate import Rate
from mechanisms.selection.checks import a_release_each, enough, one_release
from mechanisms.selection.laws import (
    OrderedLaw,
    one_shot_probabilities,
    peeled_probabilities,
    permute_and_flip_probabilities,
)
from mechanisms.selection.selector import Draws, Selector


class PermuteAndFlip(Selector):
    name = "permute_and_flip"
    title = "Permute-and-flip"
    description = (
        "Adds one-sided geometric noise to every score and takes the largest, equal ones at "
        "random: exactly the permute-and-flip mechanism. Its expected error is never above that "
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

    def steps(self, loss: PrivacyLoss, k: int, draws: Draws) -> tuple[Step, ...]:
        if draws == "one_shot":
            return one_release("one-shot permute-and-flip", loss, k)
        return a_release_each("permute-and-flip draw", loss, k)

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
        steps = self.steps(loss, k, draws)
        if draws == "one_shot":
            rate = Rate.of(loss.epsilon_nano, score_bits, k)
            return noisy_max(scores, k, rate, randomness, executor)
        rest = np.arange(scores.size, dtype=np.int64)
        drawn = np.empty(k, dtype=np.int64)
        shares = (step.loss for step in steps for _ in range(step.times))
        for j, share in enumerate(shares):
            rate = Rate.of(share.epsilon_nano, score_bits)
            (place,) = noisy_max(scores[rest], 1, rate, randomness, executor)
            drawn[j] = rest[place]
            rest = np.delete(rest, place)
        return drawn

    def probabilities(self, scores: Sequence[int], p: Fraction) -> list[Fraction]:
        return permute_and_flip_probabilities(scores, p)

    def ordered_probabilities(
        self, scores: Sequence[int], p: Fraction, k: int, draws: Draws
    ) -> OrderedLaw:
        if draws == "one_shot":
            return one_shot_probabilities(scores, p, k)
        return peeled_probabilities(permute_and_flip_probabilities, scores, p, k)

    def misses(self, n: int, k: int) -> Fraction:
        """The larger of the bounds for both values of ``draws``.

        A candidate beats one that is x better only if its noise is larger by x: ½·e^(−λx) for each
        of n − 1. In one shot, some of n noises must exceed x: n·e^(−λx).
        """
        enough(k, n)
        if k == 1:
            return Fraction(n - 1, 2)
        return max(Fraction(n), Fraction(k * (n - 1), 2))
