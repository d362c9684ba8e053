"""Centres of private records, and the encoding that assigns your own records to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self, overload

from privypurse.answers.answer import Answer, Interval
from privypurse.answers.arrays import Matrix, matrix
from privypurse.levels import Column, Columns, Row, rows_of, value_of
from privypurse.notebook import table


@dataclass(frozen=True)
class AttributeEncoding:
    """One attribute of the encoding: a vector for each of its values."""

    column: Column
    values: list[str]
    vectors: list[list[float]]

    def vector(self, row: Row) -> list[float]:
        return self.vectors[self.column.position(value_of(row, self.column.name), self.values)]


@dataclass(frozen=True)
class Clusters(Answer):
    """Cluster centres: ``centres`` has shape (clusters, coordinates), ordered as ``encoding``.

    ``sizes``: how many records were nearest to each centre before its last move, each with the
    interval that holds with probability ``confidence``; None from a service before 0.2.
    """

    centres: Matrix
    encoding: list[AttributeEncoding]
    sizes: list[Interval] | None = None
    confidence: float | None = None

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        answer = reply["answer"]
        encoding = [
            AttributeEncoding(columns[one["name"]], one["values"], one["vectors"])
            for one in answer["encoding"]["attributes"]
        ]
        sizes = None if "sizes" not in answer else Interval.each(answer["sizes"])
        return cls(
            **cls.common(reply),
            centres=matrix(answer["centres"]),
            encoding=encoding,
            sizes=sizes,
            confidence=answer.get("confidence"),
        )

    def point(self, row: Row) -> list[float]:
        """The coordinates of one record."""
        return [x for one in self.encoding for x in one.vector(row)]

    @overload
    def assign(self, rows: Row) -> int: ...
    @overload
    def assign(self, rows: Sequence[Row]) -> list[int]: ...
    @overload
    def assign(self, rows: Any) -> Any: ...
    def assign(self, rows: Any) -> Any:
        """The index of the nearest centre of one row, or of each row of a sequence or a frame."""
        centres = [[float(x) for x in centre] for centre in self.centres]
        if isinstance(rows, Mapping):
            return nearest(self.point(rows), centres)
        return [nearest(self.point(row), centres) for row in rows_of(rows)]

    def typical(self) -> list[dict[str, str]]:
        """For each centre, the record nearest to it: a typical member of its cluster."""
        edges = [0]
        for one in self.encoding:
            edges.append(edges[-1] + len(one.vectors[0]))
        records = []
        for centre in self.centres:
            parts = [[float(x) for x in centre[a:b]] for a, b in pairwise(edges)]
            records.append(
                {
                    one.column.name: one.values[nearest(part, one.vectors)]
                    for one, part in zip(self.encoding, parts, strict=True)
                }
            )
        return records

    def _repr_html_(self) -> str:
        names = [one.column.name for one in self.encoding]
        rows = [[index, *typical.values()] for index, typical in enumerate(self.typical())]
        if self.sizes is not None:
            names += ["size", f"interval ({self.confidence:.0%})"]
            rows = [
                [*row, "" if one.suppressed else one.value, one]
                for row, one in zip(rows, self.sizes, strict=True)
            ]
        return table(["cluster", *names], rows) + self._charge_line()


def nearest(point: Sequence[float], others: Sequence[Sequence[float]]) -> int:
    """The index of the nearest of ``others`` by Euclidean distance; the lowest if several tie."""
    return min(
        range(len(others)),
        key=lambda k: sum((x - y) ** 2 for x, y in zip(point, others[k], strict=True)),
    )
