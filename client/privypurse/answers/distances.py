"""Distances between the values of attributes, as matrices that scikit-learn accepts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from privypurse.answers.answer import Answer
from privypurse.answers.arrays import Matrix, matrix
from privypurse.levels import Column, Columns, rows_of, value_of
from privypurse.notebook import heat, paragraph


@dataclass(frozen=True)
class Distance:
    """The distances between the values of one attribute.

    ``matrix``: symmetric, zero diagonal, all in [0, 1], shape (values, values), in the order of
    ``values``. ``context``: the attributes that the distances are computed from. ``embedding``:
    coordinates of the values at exactly these distances; None unless the query requested them.
    """

    column: Column
    values: list[str]
    matrix: Matrix
    context: list[str]
    embedding: Matrix | None

    def between(self, one: object, other: object) -> float:
        """The distance between two values; a number is replaced by its public bin."""
        return float(self.matrix[self._position(one)][self._position(other)])

    def of(self, values: Sequence[object]) -> Matrix:
        """Distances between your own values, shape (n, n): for ``metric="precomputed"``."""
        at = [self._position(value) for value in values]
        if isinstance(self.matrix, list):
            return [[self.matrix[i][j] for j in at] for i in at]
        return self.matrix[at][:, at]

    def _position(self, value: object) -> int:
        return self.column.position(value, self.values)

    def _repr_html_(self) -> str:
        context = ", ".join(self.context) or "nothing"
        title = paragraph(f"{self.column.name}, context: {context}")
        return title + heat(self.values, self.matrix)


@dataclass(frozen=True)
class Distances(Answer, Mapping[str, Distance]):
    """The distances of every attribute of the query: ``answer["town"].matrix``."""

    distances: dict[str, Distance]

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        distances = {
            name: Distance(
                columns[name],
                one["values"],
                matrix(one["matrix"]),
                one["context"],
                matrix(one["embedding"]) if "embedding" in one else None,
            )
            for name, one in reply["answer"]["distances"].items()
        }
        return cls(**cls.common(reply), distances=distances)

    def between_rows(self, rows: Any) -> Matrix:
        """Distances between your own records, shape (n, n): for ``metric="precomputed"``.

        The square of a distance is the sum over the attributes of the squares for their values, as
        in clustering.
        """
        table = list(rows_of(rows))
        parts = [
            one.of([value_of(row, name) for row in table]) for name, one in self.distances.items()
        ]
        if not isinstance(parts[0], list):
            return sum(part**2 for part in parts) ** 0.5
        n = range(len(table))
        return [[math.sqrt(sum(part[i][j] ** 2 for part in parts)) for j in n] for i in n]

    def __getitem__(self, name: str) -> Distance:
        return self.distances[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.distances)

    def __len__(self) -> int:
        return len(self.distances)

    def _repr_html_(self) -> str:
        return "".join(one._repr_html_() for one in self.distances.values()) + self._charge_line()
