"""Faults that the meter must find: work that depends on the values of an array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.following import follows_records
from mechanisms.model.randomness import WordSource

Values = NDArray[np.int64]


def equal(values: Values, source: WordSource) -> int:
    """No fault: the same work for all values."""
    total = 0
    for value in values:
        total += int(value)
    return total + source.words(2).size + np.where(values > 3, values, 0).size


def ends_at_a_value(values: Values, source: WordSource) -> int:  # noqa: ARG001
    for place, value in enumerate(values):
        if value > 3:
            return place
    return -1


def shrinks(values: Values, source: WordSource) -> Values:  # noqa: ARG001
    return np.flatnonzero(values > 3)


def doubles_a_block(values: Values, source: WordSource) -> int:  # noqa: ARG001
    size = 1
    while size < values.max():
        size *= 2
    return size


def reads_a_word_for_large_scores(values: Values, source: WordSource) -> int:
    return source.words(1 if values.max() > 3 else 0).size


@follows_records("ends at a value", lambda values: len(values) + 1)
def declared(values: Values, source: WordSource) -> int:
    return ends_at_a_value(values, source)


@follows_records("a bound that is too small", lambda values: len(values) - 1)
def bound_too_small(values: Values, source: WordSource) -> int:
    return ends_at_a_value(values, source)


@follows_records(
    "words follow the values", lambda values: len(values) + 1, words=lambda values: len(values)
)
def declared_words(values: Values, source: WordSource) -> int:
    return reads_a_word_for_large_scores(values, source)


@follows_records(
    "a bound on words that is too small", lambda values: len(values) + 1, words=lambda: 0
)
def words_beyond_their_bound(values: Values, source: WordSource) -> int:
    return reads_a_word_for_large_scores(values, source)


@follows_records("words follow the values", lambda values: len(values) + 1)
def undeclared_words(values: Values, source: WordSource) -> int:
    return reads_a_word_for_large_scores(values, source)
