"""Tables of grouped numbers, as data frames and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Self

from privypurse.answers.answer import SUPPRESSED, Answer
from privypurse.frames import library
from privypurse.levels import Columns
from privypurse.notebook import paragraph, table

#: The numbers of one aggregate as lists: value, low and high, and raw if the values were adjusted.
#: A number that the dataset suppresses is None.
Numbers = Mapping[str, Sequence[float | None]]
#: The most rows that a notebook shows.
MOST_ROWS = 100


@dataclass(frozen=True)
class Sheet:
    """Numbers by the groups of some attributes, in row-major order of ``by``.

    ``columns``: by the name of an aggregate, lists of ``value``, ``low``, ``high``, and ``raw`` if
    the values were adjusted; the intervals are those of ``raw``. ``measured``: True for totals with
    noise of their own. ``suppressed``: which rows the dataset suppresses, or None if it never does.
    ``open``: True if ``by`` holds a label per row, because the groups are not public.
    """

    by: Mapping[str, Sequence[str]]
    columns: Mapping[str, Numbers]
    measured: bool = False
    suppressed: Sequence[bool] | None = None
    open: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))["value"])

    def labels(self) -> Iterator[tuple[str, ...]]:
        """The groups of each row, in the order of the attributes."""
        if self.open:
            return zip(*self.by.values(), strict=True)
        return product(*self.by.values())

    def rows(self) -> list[dict[str, Any]]:
        """A row per cell: the attributes, and per aggregate a dictionary of its numbers."""
        return [
            {
                **dict(zip(self.by, labels, strict=True)),
                **{
                    name: {part: numbers[i] for part, numbers in column.items()}
                    for name, column in self.columns.items()
                },
            }
            for i, labels in enumerate(self.labels())
        ]

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``: the attributes as index, columns (aggregate, value | low | high).

        Raises: ImportError if pandas or pyarrow is not installed.
        """
        frame = self.to_arrow().to_pandas()
        if self.by:
            frame = frame.set_index(self._names())
        frame.columns = frame.columns.str.rsplit(".", n=1, expand=True)
        return frame

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``: the attributes, then ``count.value``, ``count.low`` and so on.

        An attribute of such a name is named as ``by.count.value``.

        Raises: ImportError if pyarrow is not installed.
        """
        labels = list(self.labels())
        data: dict[str, Any] = {
            name: [row[place] for row in labels] for place, name in enumerate(self._names())
        }
        for name, column in self.columns.items():
            data |= {f"{name}.{part}": list(numbers) for part, numbers in column.items()}
        return library("pyarrow").table(data)

    def _names(self) -> list[str]:
        """The columns of the attributes, none of which is also one of numbers."""
        taken = {f"{name}.{part}" for name, column in self.columns.items() for part in column}
        names: list[str] = []
        for attribute in self.by:
            name = attribute
            while name in taken or name in names:
                name = f"by.{name}"
            names.append(name)
        return names

    def _repr_html_(self) -> str:
        head = [*self.by]
        for name in self.columns:
            head += [name, "interval"]
        lines = []
        for i, labels in zip(range(MOST_ROWS), self.labels(), strict=False):
            cells: list[object] = [*labels]
            for one in self.columns.values():
                numbers = [one[name][i] for name in ("value", "low", "high")]
                if None in numbers:
                    cells += ["", SUPPRESSED]
                else:
                    value, low, high = numbers
                    cells += [f"{value:g}", f"{low:g} … {high:g}"]
            lines.append(cells)
        rest = len(self) - len(lines)
        return table(head, lines) + (paragraph(f"{rest} more rows") if rest else "")


class Sheets:
    """What has ``cells`` and ``totals``: both are read as sheets and as data frames."""

    cells: Sheet
    totals: list[Sheet]

    def total(self, *by: str) -> Sheet:
        """The totals by these attributes; without any, the grand total.

        Raises: KeyError if there are no such totals.
        """
        for sheet in self.totals:
            if set(sheet.by) == set(by):
                return sheet
        raise KeyError(by)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of ``cells``."""
        return self.cells.rows()

    def to_pandas(self) -> Any:
        """The cells as a ``pandas.DataFrame``; see ``Sheet.to_pandas``."""
        return self.cells.to_pandas()

    def to_arrow(self) -> Any:
        """The cells as a ``pyarrow.Table``; see ``Sheet.to_arrow``."""
        return self.cells.to_arrow()


@dataclass(frozen=True)
class Table(Sheets, Answer):
    """A table: ``cells`` has all its cells, ``totals`` has one sheet per margin.

    Each interval holds with a probability of at least ``confidence``.
    """

    cells: Sheet
    totals: list[Sheet]
    confidence: float

    @classmethod
    def read(cls, reply: Mapping[str, Any], columns: Columns) -> Self:
        del columns
        answer = reply["answer"]
        by = answer["by"]
        totals = [
            Sheet(
                {name: by[name] for name in one["by"]},
                one["cells"],
                one["measured"],
                one.get("suppressed"),
            )
            for one in answer.get("totals", ())
        ]
        return cls(
            **cls.common(reply),
            cells=Sheet(
                by,
                answer["cells"],
                suppressed=answer.get("suppressed"),
                open=answer.get("open", False),
            ),
            totals=totals,
            confidence=answer["confidence"],
        )

    def _repr_html_(self) -> str:
        note = paragraph(f"Each interval holds with a probability of {self.confidence:.0%}.")
        return self.cells._repr_html_() + note + self._charge_line()
