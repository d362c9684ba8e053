"""Averages of tables with Gaussian noise: asking again adds to what was paid before.

Two independent answers at ρ₁ and ρ₂, weighted by their precision, have the noise of one answer at
ρ₁ + ρ₂. So an answer that is too coarse is topped up by asking once more for what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil, exp, inf, log, pi, prod, sqrt
from statistics import NormalDist
from typing import NamedTuple, cast

from privypurse.answers.tables import Numbers, Sheet, Sheets, Table

_NORMAL = NormalDist()
#: More than the rounding error in the computed half width of an interval, in steps (the noise is a
#: whole multiple of a step).
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Average(Sheets):
    """The average of answers to one question, weighted by precision.

    ``cells`` and ``totals`` are as in a ``Table``; they have the columns of counts and sums, each
    with an interval that holds with a probability of at least ``confidence``. ``rho`` is the sum
    of the charges.
    """

    answers: tuple[Table, ...]
    rho: Decimal
    cells: Sheet
    totals: list[Sheet]
    confidence: float

    def _repr_html_(self) -> str:
        return self.cells._repr_html_()


def average(answers: Sequence[Table]) -> Average:
    """The average of at least two answers with Gaussian noise to one question.

    The answers must differ: the same answer twice has the same noise twice.

    Raises: ValueError if they are not tables that answer one question on one version of the
    records. Also if small numbers are suppressed or negative ones set to 0, which makes averages
    wrong.
    """
    _check(answers)
    charges = [one.charge.rho or Decimal(0) for one in answers]
    rho = sum(charges, Decimal(0))
    weights = [float(one / rho) for one in charges]
    first = answers[0]
    margins = zip(*(one.totals for one in answers), strict=True)
    return Average(
        tuple(answers),
        rho,
        _sheet(answers, [one.cells for one in answers], weights, None),
        [_sheet(answers, margin, weights, list(margin[0].by)) for margin in margins],
        first.confidence,
    )


def _check(answers: Sequence[Table]) -> None:
    if not all(isinstance(one, Table) for one in answers):
        raise ValueError("only tables are averaged: other answers do not show all noisy numbers")
    if len(answers) < 2 or len({one.id for one in answers}) < len(answers):
        raise ValueError("an average takes two or more different answers")
    for one, other in pairwise(answers):
        same = ("dataset", "dataset_version")
        if any(getattr(one, name) != getattr(other, name) for name in same):
            raise ValueError("the answers are not of one version of one dataset")
        if one.reply["query"] != other.reply["query"]:
            raise ValueError("the answers are not to one question")
    for one in answers:
        if one.charge.epsilon.is_finite() or one.charge.rho is None:
            raise ValueError("only answers with Gaussian noise are averaged")
        if one.reply["query"].get("non_negative"):
            raise ValueError("numbers that are never negative are too high on average")
        if one.cells.suppressed is not None:
            raise ValueError("numbers that are suppressed when they are small are not averaged")


def _sheet(
    answers: Sequence[Table],
    sheets: Sequence[Sheet],
    weights: Sequence[float],
    by: list[str] | None,
) -> Sheet:
    """The averages of one sheet; ``by`` are the attributes of totals, None for the cells."""
    first = sheets[0]
    columns: dict[str, Numbers] = {}
    for name in first.columns:
        if not _is_linear(name):
            continue
        noises = [
            _noise_of(answer, sheet, name, by)
            for answer, sheet in zip(answers, sheets, strict=True)
        ]
        numbers = [sheet.columns[name] for sheet in sheets]
        columns[name] = _column(numbers, noises, weights, answers[0].confidence)
    return Sheet(first.by, columns, first.measured, None, first.open)


class Noise(NamedTuple):
    """The noise of the numbers of one column: each is a sum of ``terms`` Gaussian noises.

    ``deviation`` is σ of one of them; they are whole multiples of ``step``.
    """

    deviation: float
    step: float
    terms: int

    @property
    def spread(self) -> float:
        """σ of the sum."""
        return self.deviation * sqrt(self.terms)

    @property
    def departure(self) -> float:
        """A bound on |ln| of the ratio between the law of the sum and one discrete Gaussian.

        Source: Kairouz, Liu, Steinke 2021, Theorem 11.
        """
        return 10 * (self.terms - 1) * exp(-((pi * self.deviation / self.step) ** 2))

    def least_half_width(self, miss: float) -> float:
        """A bound from below on the half width of an interval that misses with this chance.

        The masses of the discrete law fall away from 0, so its tail from d is at least the integral
        from d; and the interval ends at a whole multiple.
        """
        chance = miss * exp(self.departure)
        if chance >= 1:
            return 0.0
        tail = -_NORMAL.inv_cdf(chance / 2) * self.spread / self.step
        return max(0, ceil(tail - 1 - _ROUNDING)) * self.step


def _is_linear(name: str) -> bool:
    """True for the columns of counts and sums; others, such as means, combine several numbers."""
    return name == "count" or name.startswith("sum(")


def _noise_of(answer: Table, sheet: Sheet, name: str, by: list[str] | None) -> Noise:
    """The noise of a column of counts or sums, in the cells or the totals ``by``."""
    what = "count" if name == "count" else f"sum of {name[4:-1]}"
    parts = [one for one in answer.reply["answer"]["noise"] if one["what"] == what]
    own = next((one for one in parts if _names(one["by"]) == _names(by)), None)
    if own is None:
        own = next(one for one in parts if one["by"] is None)
        sizes = answer.cells.by.items()
        terms = prod(len(labels) for axis, labels in sizes if axis not in sheet.by)
    else:
        terms = 1
    if "step" not in own:
        raise ValueError("the answers are of an earlier service, which states no steps of noise")
    return Noise(own["scale"], own["step"], terms)


def _column(
    numbers: Sequence[Numbers],
    noises: Sequence[Noise],
    weights: Sequence[float],
    confidence: float,
) -> dict[str, list[float]]:
    """The weighted averages of one column, and intervals around those of the released numbers.

    The interval of an answer is as wide as its noise, and wider by what rounding took from the
    true number. The average of the latter stays; the noise is that of the average.
    """
    miss = 1 - confidence
    width = half_width(noises, weights, miss)
    less = sum(w * one.least_half_width(miss) for w, one in zip(weights, noises, strict=True))
    mean: dict[str, list[float]] = {}
    for end in {"value", "low", "high", "raw"} & numbers[0].keys():
        rows = zip(*(cast("Sequence[float]", one[end]) for one in numbers), strict=True)
        mean[end] = [sum(w * x for w, x in zip(weights, row, strict=True)) for row in rows]
    return {
        **mean,
        "low": [low + less - width for low in mean["low"]],
        "high": [high - less + width for high in mean["high"]],
    }


def _names(by: Sequence[str] | None) -> set[str] | None:
    return None if by is None else set(by)


def half_width(noises: Sequence[Noise], weights: Sequence[float], miss: float) -> float:
    """A number that the weighted sum of the noises exceeds at most with chance ``miss``.

    A discrete Gaussian of σ is at most e^(1/(24σ²)) times as likely, at each point, as a normal
    number rounded to whole ones: by Jensen's inequality over the rounded part. Rounding moves the
    weighted sum by at most half a step. And the sum is sub-Gaussian (Canonne, Kamath, Steinke
    2020), which is better for small σ.
    """
    spread = sqrt(sum((w * one.spread) ** 2 for w, one in zip(weights, noises, strict=True)))
    rounding = sum(w * one.step / 2 for w, one in zip(weights, noises, strict=True))
    lift = sum(one.departure + (one.step / one.spread) ** 2 / 24 for one in noises)
    normal = inf if lift > 1 else rounding - _NORMAL.inv_cdf(miss * exp(-lift) / 2) * spread
    return min(normal, spread * sqrt(2 * log(2 / miss)))
