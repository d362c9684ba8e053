"""Answers of paid queries: the answer, its charge and its receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isnan, nan
from typing import Any, Self

from privypurse.amounts import Amount, Charge
from privypurse.frames import Framed
from privypurse.levels import Columns
from privypurse.notebook import bars, paragraph, table


@dataclass(frozen=True)
class Answer:
    """A paid answer.

    ``remaining`` is the rest of the allowance after this charge; ``reply`` is the whole reply of
    the service.
    """

    id: str
    dataset: str
    dataset_version: int
    charge: Charge
    remaining: Amount
    receipt: str
    reply: Mapping[str, Any]

    @property
    def question(self) -> str | None:
        """The query as one plain sentence; None in answers of a service before 0.2."""
        question: str | None = self.reply["answer"].get("question")
        return question

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """The steps of the mechanism that the charge was spent on."""
        return list(self.reply["steps"])

    @staticmethod
    def common(reply: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that all kinds of answers have."""
        return {
            "id": reply["id"],
            "dataset": reply["dataset"],
            "dataset_version": reply["dataset_version"],
            "charge": Charge.of(reply["charge"]),
            "remaining": Amount.of(reply["remaining"]),
            "receipt": reply["receipt"],
            "reply": reply,
        }

    def _charge_line(self) -> str:
        """The question, the charge and the remaining allowance, as lines for notebooks."""
        question = "" if self.question is None else paragraph(self.question)
        price = f"{self.dataset}: charged {self.charge}, remaining {self.remaining}"
        return question + paragraph(price)


#: The most bars that a notebook draws for the values of one answer; its table lists all.
MOST_BARS = 60
#: The text in place of a number that the dataset suppresses.
SUPPRESSED = "suppressed"


def _number(number: float | None) -> float:
    """The number, or NaN in place of a suppressed one."""
    return nan if number is None else number


@dataclass(frozen=True)
class Selection(Answer):
    """The selected candidate: a node, a value, the name of an attribute, or the index of a tree.

    ``resolved``: what ``auto`` stood for, and the reason.
    """

    selected: Any
    resolved: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        del columns
        answer = reply["answer"]
        resolved = answer.get("resolved", {})
        return cls(**cls.common(reply), selected=answer["selected"], resolved=resolved)

    def _repr_html_(self) -> str:
        return table(["selected"], [[self.selected]]) + self._charge_line()


@dataclass(frozen=True)
class Interval:
    """A released number and the interval of the true number, by the law of the noise.

    ``raw``: the number before an adjustment such as clamping; the interval is of ``raw``. A number
    that the dataset suppresses is NaN, and so are its ends.
    """

    value: float
    low: float
    high: float
    raw: float | None = None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Self:
        value, low, high = (_number(body[end]) for end in ("value", "low", "high"))
        return cls(value, low, high, body.get("raw"))

    @property
    def suppressed(self) -> bool:
        """True if the count is below the ``minimum_count`` of the dataset."""
        return isnan(self.value)

    @classmethod
    def each(cls, columns: Mapping[str, Any]) -> list[Self]:
        """Several numbers, from the lists ``value``, ``low`` and ``high``."""
        ends = zip(columns["value"], columns["low"], columns["high"], strict=True)
        return [cls(_number(value), _number(low), _number(high)) for value, low, high in ends]

    def __str__(self) -> str:
        if self.suppressed:
            return SUPPRESSED
        return f"{self.low:.6g} … {self.high:.6g}"


@dataclass(frozen=True)
class TopK(Answer, Framed):
    """The selected candidates: likely the best first if ``ordered``, else in the public order.

    ``values`` holds the noisy utility of each candidate, where the mechanism releases it. All
    intervals hold together with probability ``confidence``. ``resolved``: what ``auto`` stood for,
    and the reason.
    """

    selected: list[Any]
    ordered: bool = True
    values: list[Interval] | None = None
    confidence: float | None = None
    resolved: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        del columns
        answer = reply["answer"]
        numbers = answer.get("values")
        values = None
        if numbers is not None:
            values = Interval.each(numbers)
        return cls(
            **cls.common(reply),
            selected=list(answer["selected"]),
            ordered=answer.get("ordered", True),
            values=values,
            confidence=answer.get("confidence"),
            resolved=answer.get("resolved", {}),
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row for each candidate: selected, and value, low and high where they are released."""
        rows: list[dict[str, Any]] = [{"selected": one} for one in self.selected]
        for row, value in zip(rows, self.values or [], strict=False):
            row.update(value=value.value, low=value.low, high=value.high)
        return rows

    def _repr_html_(self) -> str:
        place = "draw" if self.ordered else ""
        if self.values is None:
            rows = table([place, "selected"], enumerate(self.selected, 1))
        else:
            pairs = list(zip(self.selected, self.values, strict=True))
            cells = [[one, "" if v.suppressed else v.value, v] for one, v in pairs]
            rows = table(["selected", "value", f"interval ({self.confidence:.0%})"], cells)
            drawn = [(str(one), v) for one, v in pairs if not v.suppressed][:MOST_BARS]
            ends = [(v.value, v.low, v.high) for _, v in drawn]
            rows = bars([name for name, _ in drawn], ends) + rows
        return rows + self._charge_line()


@dataclass(frozen=True)
class Value(Answer, Framed):
    """One number.

    ``low`` and ``high`` are the ends of the shortest interval that contains the true number with at
    least the probability ``confidence``. They and ``noise_scale`` are None where the size of the
    noise is private. ``raw``: the number before it was moved inside its bounds, if it was.
    ``parts``: the released sum and count of a mean. A number that the dataset suppresses is NaN.
    """

    value: float
    noise_scale: float | None
    low: float | None = None
    high: float | None = None
    confidence: float | None = None
    raw: float | None = None
    parts: Mapping[str, Interval] = field(default_factory=dict)

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        del columns
        answer = reply["answer"]
        optional = ("noise_scale", "low", "high", "confidence", "raw")
        parts = {name: Interval.of(part) for name, part in answer.get("parts", {}).items()}
        fields = {name: answer.get(name) for name in optional}
        return cls(**cls.common(reply), value=_number(answer["value"]), parts=parts, **fields)

    @property
    def suppressed(self) -> bool:
        """True if the count is below the ``minimum_count`` of the dataset."""
        return isnan(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def rows(self) -> list[dict[str, Any]]:
        """A row for the value, and one for each part, with the ends of the intervals."""
        numbers: dict[str, Value | Interval] = {"value": self, **self.parts}
        return [
            {"number": name, "value": one.value, "low": one.low, "high": one.high}
            for name, one in numbers.items()
        ]

    @property
    def explanation(self) -> str | None:
        """The interval as a sentence, or why there is none."""
        if self.suppressed:
            return "The noisy count is below the least that the owner of the dataset shows."
        if self.low is None or self.high is None:
            explanation: str | None = self.reply["answer"].get("explanation")
            return explanation
        return (
            f"The true number lies between {self.low:.6g} and {self.high:.6g} with a probability "
            f"of at least {self.confidence:.0%}."
        )

    def _repr_html_(self) -> str:
        scale = "" if self.noise_scale is None else f"{self.noise_scale:g}"
        value = SUPPRESSED if self.suppressed else f"{self.value:g}"
        number = table(["value", "noise scale"], [[value, scale]])
        words = "" if self.explanation is None else paragraph(self.explanation)
        return number + words + self._charge_line()
