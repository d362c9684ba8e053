"""A set of k candidates, drawn with P(S) ∝ e^{λ·Σ_{r ∈ S} score(r)}, exactly.

Toss an independent coin for every candidate, with odds e^{λ·score(r)}/θ, until exactly k show
heads. For *every* θ > 0 these k have the law above, because θ^k cancels. So θ may follow the
scores, in floats: only the number of rounds depends on it. At the θ with mean k, a round succeeds
with probability e^{−k}·k^k/k! at least (Hoeffding 1956), whatever the scores.

Danger: never answer with a partial round, nor with the best set so far. A draw that has taken
``most_rounds`` goes on. That bound is for release instants and is exceeded with probability 2^−64.

No float decides a coin. A uniform U with 64 known bits is compared with a bracket of π; if they
overlap, more bits are read and π is computed in interval arithmetic, as in ``noise.refinement``.

Source: Theorem 1 of docs/dev/theory/joint.md; coins after ``noise.shells``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.compiled import compiled
from mechanisms.model.following import follows_records
from mechanisms.model.randomness import Randomness, Words, WordSource
from mechanisms.noise.addition import Integers
from mechanisms.noise.arrivals import Floats
from mechanisms.noise.intervals import bounds, intervals
from mechanisms.noise.order import kth_largest
from mechanisms.noise.rate import Rate
from mechanisms.noise.shells import DEEPEST, GROUP, Groups, survivors

#: To draw k candidates, a coin is tossed for every candidate until exactly k coins show heads. The
#: odds of all coins are divided by one number θ, so that about k do. ln θ is rounded to a multiple
#: of 2^−20. Then the logarithm of the odds against heads, λ·gap + ln θ, is a quotient of whole
#: numbers. The gap is how far the candidate's score is below the k-th largest one.
_THRESHOLD_BITS = 20
#: θ divides the odds of heads of all coins, so that about k of them show heads. The search for ln θ
#: ends when the mean number of heads is within this share of k, or after this many steps. It leaves
#: out coins that show heads with a probability below e^−_IMPROBABLE. Errors of the search change
#: only the number of rounds, never the law.
_BALANCE, _STEPS, _IMPROBABLE = 2.0**-10, 60, 64.0
#: The search for θ, which divides the odds of heads of all coins, takes odds above e^256 as e^256,
#: and ln θ stays above about −256. So the odds are doubles that neither overflow nor vanish.
_CERTAIN = 256.0
#: A number slightly above ln 2. Coins of shell j must show heads with a probability below 2^−j.
#: They do if the logarithm of their odds against heads is at least j times this number.
_SHELL = 0.6931471806
#: A bound on two errors of doubles. λ is the rate of the draw, and θ divides the odds of all coins.
#: Danger: the logarithm of the odds that a candidate's coin does not show heads, y = λ·gap + ln θ,
#: may be a small difference of two large numbers: its error is at most this bound times
#: 1 + |y| + |λ·gap|. The probability of heads that follows from y has at most this relative error.
#: The exponential functions of NumPy and numba err far less.
_ERROR = 2.0**-40
_UNIT = 2.0**-64
_WORD = 64
_LN_2 = math.log(2)
#: The side that a coin shows by the first 64 bits of its random number, or OPEN if further bits
#: decide. TAILS and HEADS are also truth values.
TAILS, HEADS, OPEN = 0, 1, 2
#: ln 2^64. If each round of tosses succeeds with probability a, the first ln 2^64 / a rounds all
#: fail with a probability of at most 2^−64. So this quotient is the public bound on rounds.
_PATIENCE = 64 * _LN_2


def _most_work(scores: Integers, k: int) -> int:
    """The public bound of ``subset``, on its lines and on its random words.

    A round reads at most 255 words for each group and one for each coin, and blocks of words end
    within two groups of the last.
    """
    groups = scores.size // GROUP + DEEPEST + 3
    return (most_rounds(scores.size, k) + 1) * (scores.size + groups * (DEEPEST + 1))


@follows_records(
    "rounds until k coins show heads, and the words of each round", _most_work, words=_most_work
)
def subset(
    scores: Integers,
    k: int,
    rate: Rate,
    randomness: Randomness,
    *,
    widen: float = 1.0,
    shift: float = 0.0,
) -> Integers:
    """Indices of k candidates in ascending order, shape (k,): P(S) ∝ e^{λ·Σ score}.

    Args:
        scores: private whole numbers, shape (n,), n ≥ k ≥ 1; |score| < 2⁶¹ by public bounds.
        rate: ``Rate.of_counts(E, ρ)``; ρ bounds the change of the sum of the k largest scores less
            that of the k smallest (``model.joint_influence``).
        widen: factor ≥ 1 on every bracket; it changes the work, never the law.
        shift: added to ln θ; it changes the number of rounds, never the law.

    Privacy: ε-DP. The set has no order, so the answer is in the public order of candidates.
    """
    if k == scores.size:
        return np.arange(k, dtype=np.int64)
    if 2 * k > scores.size:
        left_out = subset(-scores, scores.size - k, rate, randomness, widen=widen, shift=shift)
        return np.setdiff1d(np.arange(scores.size, dtype=np.int64), left_out)
    coins = _Coins.of(scores, k, rate, shift, widen)
    groups = Groups.of(coins.shells)
    source = randomness.stream()
    while True:
        heads = coins.heads(survivors(groups, source), source)
        if heads.size == k:
            return np.sort(heads)


def least_acceptance(k: int) -> float:
    """e^{−k}·k^k/k!: the least probability that a round shows exactly k heads of mean k ≥ 1."""
    return math.exp(k * math.log(k) - k - math.lgamma(k + 1))


def most_rounds(n: int, k: int) -> int:
    """The public number of rounds that suffices except with probability 2^−64."""
    fewer = min(k, n - k)
    return math.ceil(_PATIENCE / least_acceptance(fewer)) if fewer else 0


@dataclass(frozen=True)
class _Coins:
    """Private: ln of the odds against each candidate, y = λ·gap + T/2^20, and its shell."""

    gaps: Integers
    #: The whole number T = 2^20·ln θ, where a coin shows heads with odds e^{−λ·gap}/θ. A gap is how
    #: far a score is below the k-th largest one.
    threshold: int
    rate: Rate
    against: Floats
    #: For each coin, a bound on the error of ``against``, the logarithm of the odds against heads.
    errors: Floats
    shells: Integers

    @classmethod
    def of(cls, scores: Integers, k: int, rate: Rate, shift: float, widen: float) -> _Coins:
        # The gap of a candidate is measured from the k-th largest score. If it were measured from
        # the largest one, λ·gap and ln θ could be large numbers with a small difference, which
        # would have a large rounding error.
        gaps = kth_largest(scores, k) - scores
        log_odds = rate.a / rate.b * gaps.astype(np.float64)
        threshold = round((balanced(log_odds, gaps, k, rate) + shift) * (1 << _THRESHOLD_BITS))
        against = log_odds + threshold / (1 << _THRESHOLD_BITS)
        errors = _ERROR * (1 + np.abs(against) + np.abs(log_odds))
        # Danger: a coin of shell j must show heads with a probability below 2^−j, or the draw would
        # not have its law. So its shell is computed from the odds against heads less their error
        # bound, and rounded down. A shell that is too small is safe, and only costs more tosses.
        shells = np.clip((against - errors) / _SHELL, 0, DEEPEST).astype(np.int64)
        return cls(gaps, threshold, rate, against, widen * errors, shells)

    def heads(self, alive: Integers, source: WordSource) -> Integers:
        """The coins of ``alive`` that show heads: U < π, given that the first bits of U are 0."""
        words = source.words(alive.size)
        sides = judge(alive, words, self.against, self.errors, self.shells)
        for place in np.flatnonzero(sides == OPEN).tolist():
            sides[place] = self._refined(int(alive[place]), int(words[place]), source)
        heads: Integers = alive[sides == HEADS]
        return heads

    def _refined(self, coin: int, word: int, source: WordSource) -> bool:
        """U < π by more bits of U and interval arithmetic; ends with probability one."""
        bits, length = word, int(self.shells[coin]) + _WORD
        numerator = self.rate.a * (int(self.gaps[coin]) << _THRESHOLD_BITS)
        numerator += self.threshold * self.rate.b
        while True:
            iv = intervals(2 * length + abs(numerator).bit_length() + _WORD)
            y = iv.mpf(numerator) / (self.rate.b << _THRESHOLD_BITS)
            low, high = bounds(1 / (1 + iv.exp(y)))
            if Fraction(bits + 1, 1 << length) <= low:
                return True
            if Fraction(bits, 1 << length) >= high:
                return False
            bits, length = bits << _WORD | int(source.words(1)[0]), length + _WORD


@compiled
def judge(
    alive: Integers, words: Words, against: Floats, errors: Floats, shells: Integers
) -> NDArray[np.uint8]:
    """HEADS or TAILS of each coin of ``alive`` by its random word, OPEN where bits are missing.

    A round tosses few coins, and there may be hundreds of rounds: so no arrays between the steps.
    """
    sides = np.empty(alive.size, dtype=np.uint8)
    for place in range(alive.size):
        coin = alive[place]
        uniform = words[place] * _UNIT
        slack = 4 * _UNIT + _ERROR * uniform
        low, high = bracket(against[coin], errors[coin], shells[coin])
        if uniform + slack < low:
            sides[place] = HEADS
        else:
            sides[place] = OPEN if uniform - slack < high else TAILS
    return sides


@compiled
def bracket(y: float, error: float, shell: int) -> tuple[float, float]:
    """Bounds on π·2^shell, for a logarithm of the odds against heads of y ± error."""
    return scaled(y + error, shell) * (1 - _ERROR), scaled(y - error, shell) * (1 + _ERROR)


@compiled
def scaled(y: float, shell: int) -> float:
    """π·2^shell = 2^shell / (1 + e^y), written so that no factor overflows."""
    # y is the logarithm of the odds against heads. It is raised to at least −700, so that e^−y does
    # not overflow; the probability of tails is then below 2^−1000 either way. In a shell above 0,
    # y is at least shell · ln 2 anyway.
    y = max(y, shell * _LN_2 if shell > 0 else -700.0)
    return math.exp(shell * _LN_2 - y) / (1.0 + math.exp(-y))


def balanced(log_odds: Floats, gaps: Integers, k: int, rate: Rate) -> float:
    """The logarithm of the θ at which the mean number of heads is about k.

    The law of the set is the same for every θ > 0; a θ near this one needs the fewest rounds.

    Args:
        log_odds: λ·gap of each coin, which shows heads with odds e^{−log_odds}/θ.
        gaps: how far each score is below the k-th largest one.

    It is Newton's method on ln of the mean number of heads. As a function of ln θ this is nearly a
    line where most coins are improbable. A step that leaves the bracket of the root halves the
    bracket instead.
    """
    # ``next_one`` is λ times the distance of the (k + 1)-th largest score from the k-th largest, 0
    # if they are equal. It bounds the search for ln θ from below.
    tied = np.count_nonzero(gaps <= 0) > k
    next_one = 0.0 if tied else rate.a / rate.b * int(gaps[gaps > 0].min())
    low, high = -min(next_one, _CERTAIN) - math.log(k + 1) - 1, math.log(gaps.size) + 1
    # Coins that hardly ever show heads are left out. They hardly change the mean number of heads,
    # and there may be a million of them.
    near, at = log_odds[log_odds + low < _IMPROBABLE], high
    odds: Floats = np.exp(-np.maximum(near, -_CERTAIN))
    for _ in range(_STEPS):
        mean, variance = expected_heads(odds, math.exp(at))
        excess = math.log(mean / k)
        if abs(excess) < _BALANCE:
            break
        low, high = (at, high) if excess > 0 else (low, at)
        # This is a step of Newton's method. It uses that the mean number of heads falls by its
        # variance for each unit of ln θ.
        at = at + excess * mean / variance if variance > 0 else low
        if not low < at < high:
            at = (low + high) / 2
            if not low < at < high:
                break  # No double lies between ``low`` and ``high``, so the search for ln θ ends.
    return at


@compiled
def expected_heads(odds: Floats, theta: float) -> tuple[float, float]:
    """Σ π and Σ π·(1 − π), for coins that show heads with odds ``odds``/θ."""
    mean, variance = 0.0, 0.0
    for one in odds:
        heads = one / (one + theta)
        mean += heads
        variance += heads * (1.0 - heads)
    return mean, variance
