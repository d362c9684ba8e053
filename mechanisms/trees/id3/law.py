"""The exact law of a whole private tree of depth one, in rationals, for certification.

The root spends one of nine shares of the loss on its noisy count and four on the split. Each child
spends four on its class counts. A root that stops has eight shares for its own class counts. There
are two classes, and r = e^−ε for the ε of one share.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import product

#: One possible result of a decision tree of depth one. It is ("leaf", label) if the root is not
#: split. Otherwise it is the index of the attribute that splits the root, and the label of the leaf
#: of each of its values.
Outcome = tuple[object, ...]
Counts = Sequence[Sequence[int]]


def depth_one_probabilities(
    tables: Sequence[Counts], selection: Sequence[Fraction], least: int, r: Fraction
) -> dict[Outcome, Fraction]:
    """Return the probability of every outcome; labels are 0 and 1.

    Args:
        tables: level × class counts of each attribute, all of the same records.
        selection: the law of the split at these records.
        least: the least number of noisy records at which the root is split.
    """
    totals = [sum(column) for column in zip(*tables[0], strict=True)]
    grows = at_least_probability(least - sum(totals), r)
    stopped = label_probabilities(totals, r**8)
    law: dict[Outcome, Fraction] = {
        ("leaf", label): (1 - grows) * share for label, share in enumerate(stopped)
    }
    for place, (table, chosen) in enumerate(zip(tables, selection, strict=True)):
        levels = [label_probabilities(counts, r**4) for counts in table]
        for labels in product((0, 1), repeat=len(table)):
            share = grows * chosen
            for level, label in zip(levels, labels, strict=True):
                share *= level[label]
            law[place, *labels] = share
    return law


@cache
def at_least_probability(noise: int, p: Fraction) -> Fraction:
    """P(X ≥ noise) for discrete Laplace noise X with P(X = k) ∝ p^|k|."""
    if noise <= 0:
        return 1 - p ** (1 - noise) / (1 + p)
    return p**noise / (1 + p)


def label_probabilities(counts: Sequence[int], p: Fraction) -> tuple[Fraction, Fraction]:
    """The probabilities that either of two noisy counts is the larger; the first wins a tie."""
    first = difference_at_least(counts[1] - counts[0], p)
    return first, 1 - first


@cache
def difference_at_least(difference: int, p: Fraction) -> Fraction:
    """P(X − Y ≥ difference) for independent X and Y with P(X = k) = P(Y = k) ∝ p^|k|.

    P(X − Y = k) = ((1 − p)/(1 + p))² · p^|k| · (|k| + (1 + p²)/(1 − p²)), summed.
    """
    if difference <= 0:
        return 1 - difference_at_least(1 - difference, p)
    scale = ((1 - p) / (1 + p)) ** 2 * p**difference
    plain = (1 + p * p) / (1 - p * p) / (1 - p)
    return scale * (Fraction(difference) / (1 - p) + p / (1 - p) ** 2 + plain)
