"""The joint exponential mechanism over sequences of k candidates: a rival, simulated in floats.

A sequence s loses max_i (c_i − value of s_i), where c_i is the i-th largest value, and is drawn
with probability proportional to exp(−ε/2 · loss). Each value moves by at most one between
neighbours, so the loss does too.

How it is drawn here: p^loss is a sum over thresholds T ≥ loss of (1 − p)·p^T. So T is drawn first,
with weight p^T times the number of sequences that lose at most T, and then one of these sequences.

Source: Gillenwater, Joseph, Muñoz Medina, Ribero 2022, "A Joint Exponential Mechanism for
Differentially Private Top-k". Not private as it stands here: floats decide the threshold.
"""

from dataclasses import dataclass
from math import expm1, log
from typing import Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from mechanisms.model.sensitivity import Integers


@dataclass(frozen=True)
class Sequences:
    """The sequences of k distinct candidates by their loss."""

    #: The candidates, those of the largest value first.
    order: Integers
    #: ``reach[T, i]`` is how many candidates may stand at position i of a sequence whose loss is at
    #: most T.
    reach: Integers

    @classmethod
    def of(cls, values: Integers, k: int) -> Self:
        """Args: values: whole numbers, shape (n,), n ≥ k ≥ 1."""
        order = np.argsort(-values, kind="stable")
        falling = -values[order]
        losses = np.arange(falling[-1] - falling[0] + 1)
        reach = np.searchsorted(falling, falling[:k] + losses[:, None], side="right")
        return cls(order, reach)

    def log_counts(self) -> NDArray[np.float64]:
        """ln of the number of sequences that lose at most T, shape (largest loss + 1,)."""
        # A candidate that may stand at one position may stand at every later one. So i of the
        # candidates for position i already stand at earlier positions.
        counts = self.reach - np.arange(self.reach.shape[1])
        logs: NDArray[np.float64] = np.log(counts).sum(axis=1)
        return logs

    def thresholds(self, epsilon: float) -> NDArray[np.float64]:
        """The law of T; the last one stands for all larger thresholds too."""
        rate = epsilon / 2
        logs = self.log_counts() - rate * np.arange(len(self.reach))
        logs[-1] -= log(-expm1(-rate))
        weights = np.exp(logs - logs.max())
        law: NDArray[np.float64] = weights / weights.sum()
        return law

    def draw(self, epsilon: float, generator: Generator) -> Integers:
        """The indices of k candidates, in order."""
        threshold = generator.choice(len(self.reach), p=self.thresholds(epsilon))
        places: list[int] = []
        for count in self.reach[threshold]:
            place = int(generator.integers(count))
            while place in places:
                place = int(generator.integers(count))
            places.append(place)
        return self.order[places]
