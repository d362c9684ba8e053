"""Released naive Bayes models: they predict classes from noisy counts.

A released model is public: predictions are free for any number of your own rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import exp, log
from typing import Any, Self

from privypurse.answers.answer import Answer, Interval
from privypurse.answers.classifier import Classifier
from privypurse.answers.record_columns import RecordColumns
from privypurse.frames import Framed
from privypurse.levels import Columns, Row, value_of
from privypurse.notebook import table


@dataclass(frozen=True)
class ValueCounts:
    """The noisy counts of one attribute: ``counts[class][value]``, in the order of both lists."""

    values: list[str]
    counts: list[list[Interval]]


@dataclass(frozen=True)
class NaiveBayes(Answer, Framed, Classifier):
    """Noisy counts of the classes, and of each value of each attribute within each class.

    The true count lies in the interval of each with probability ``confidence``.
    """

    classes: list[str]
    prior: list[Interval]
    attributes: Mapping[str, ValueCounts]
    confidence: float
    columns: Columns

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        answer = reply["answer"]
        model = answer["model"]
        attributes = {
            name: ValueCounts(
                list(one["values"]), [[Interval.of(n) for n in row] for row in one["counts"]]
            )
            for name, one in model["attributes"].items()
        }
        return cls(
            **cls.common(reply),
            classes=list(model["classes"]),
            prior=Interval.each(model["prior"]),
            attributes=attributes,
            confidence=answer["confidence"],
            columns=columns,
        )

    @property
    def labels(self) -> list[str]:
        """``classes``, ascending."""
        return sorted(self.classes)

    def _label(self, row: Row) -> str:
        scores = self._scores(row)
        return self.classes[scores.index(max(scores))]

    def _chances(self, row: Row) -> dict[str, float]:
        """As if the values of a row were independent within each class.

        Negative and suppressed counts are taken as 0, and every count is raised by 1.
        """
        scores = self._scores(row)
        weights = [exp(score - max(scores)) for score in scores]
        whole = sum(weights)
        return {n: weight / whole for n, weight in zip(self.classes, weights, strict=True)}

    def _label_column(self, records: RecordColumns) -> Any:
        return records.numpy.array(self.classes)[self._score_columns(records).argmax(axis=1)]

    def _chance_columns(self, records: RecordColumns) -> Any:
        scores = self._score_columns(records)
        weights = records.numpy.exp(scores - scores.max(axis=1, keepdims=True))
        places = [self.classes.index(label) for label in self.labels]
        return (weights / weights.sum(axis=1, keepdims=True))[:, places]

    def rows(self) -> list[dict[str, Any]]:
        """A row for each class, and one for each value of each attribute within each class."""
        return [
            {
                "class": name,
                "attribute": attribute,
                "level": level,
                "value": one.value,
                "low": one.low,
                "high": one.high,
            }
            for name, attribute, level, one in self._numbers()
        ]

    def __str__(self) -> str:
        """The number of records of each class, and the attributes of the model."""
        classes = zip(self.classes, self.prior, strict=True)
        counts = ", ".join(f"{name} {number.value:g} [{number}]" for name, number in classes)
        return f"{counts}; by {', '.join(self.attributes)}"

    def _repr_html_(self) -> str:
        names = ["class", "attribute", "level", "value", "interval"]
        cells = [
            [name, attribute, level, "" if one.suppressed else f"{one.value:g}", one]
            for name, attribute, level, one in self._numbers()
        ]
        return table(names, cells) + self._charge_line()

    def _numbers(self) -> Iterator[tuple[str, str | None, str | None, Interval]]:
        """Class, attribute, level and number, first of the classes and then of each attribute."""
        for name, number in zip(self.classes, self.prior, strict=True):
            yield name, None, None, number
        for attribute, one in self.attributes.items():
            for name, counts in zip(self.classes, one.counts, strict=True):
                for level, number in zip(one.values, counts, strict=True):
                    yield name, attribute, level, number

    def _scores(self, row: Row) -> list[float]:
        """The logarithm of the probability of each class, up to one number for all."""
        scores = list(self._log_prior)
        for name, one in self.attributes.items():
            place = self.columns[name].position(value_of(row, name), one.values)
            logs = self._log_shares[name]
            scores = [score + of[place] for score, of in zip(scores, logs, strict=True)]
        return scores

    def _score_columns(self, records: RecordColumns) -> Any:
        """The scores of all rows, (rows, classes)."""
        scores = records.numpy.tile(self._log_prior, (len(records), 1))
        for name, one in self.attributes.items():
            place = partial(self.columns[name].position, levels=one.values)
            places = records.mapped(name, records.every(), place)
            scores += records.numpy.array(self._log_shares[name]).T[places]
        return scores

    @cached_property
    def _log_prior(self) -> list[float]:
        return _log_shares(self.prior)

    @cached_property
    def _log_shares(self) -> dict[str, list[list[float]]]:
        """By attribute, for each class the logarithm of the share of each value."""
        return {
            name: [_log_shares(counts) for counts in one.counts]
            for name, one in self.attributes.items()
        }


def _log_shares(counts: Sequence[Interval]) -> list[float]:
    positive = [1 + (0 if one.suppressed else max(one.value, 0)) for one in counts]
    whole = sum(positive)
    return [log(value / whole) for value in positive]
