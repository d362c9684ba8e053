"""All tests that a proposed tree may make, from the public schema alone, and which are alive.

A categorical attribute is asked for one of its levels, a numeric one whether its number reaches an
inner edge of its public bins. An attribute thus falls into cells, its levels or bins; what a path
has answered leaves some of them possible, and a test is alive while both of its answers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mechanisms.model.domains import NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.trees.evolutionary.dice import Dice
from mechanisms.trees.task import Task

#: (attribute, place): a level of a categorical attribute, or an inner edge of a numeric one.
Test = tuple[int, int]
#: The possible cells of attributes that a path has asked, as bits; of others all are.
Possible = Mapping[int, int]
ANYTHING: Possible = {}


@dataclass(frozen=True)
class Questions:
    """The tests of a task; UnsupportedQuery when no attribute can be asked anything."""

    task: Task
    numeric: tuple[bool, ...] = field(init=False)
    #: Bits of all cells, by attribute.
    every: tuple[int, ...] = field(init=False)
    #: The attributes of two cells or more.
    askable: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        numeric = tuple(isinstance(a, NumericAttribute) for a in self.task.attributes)
        cells = [
            len(a.edges) - 1 if isinstance(a, NumericAttribute) else len(a.levels)
            for a in self.task.attributes
        ]
        object.__setattr__(self, "numeric", numeric)
        object.__setattr__(self, "every", tuple((1 << count) - 1 for count in cells))
        askable = tuple(a for a, count in enumerate(cells) if count > 1)
        object.__setattr__(self, "askable", askable)
        if not askable:
            raise UnsupportedQuery(
                "no attribute can be asked anything: a categorical one needs two levels, a "
                "numeric one two bins"
            )

    def threshold(self, test: Test) -> float:
        """The edge that a numeric attribute is compared with."""
        attribute = self.task.attributes[test[0]]
        assert isinstance(attribute, NumericAttribute)
        return attribute.edges[test[1] + 1]

    def draw(self, possible: Possible, dice: Dice) -> Test | None:
        """A living test: a uniform attribute that has any, then a uniform place; None without."""
        attribute = self.askable[dice.below(len(self.askable))]
        if not _several(possible.get(attribute, self.every[attribute])):
            # Uniform all the same: the direct chances are equal, and so are shares of the rest.
            living = [a for a in self.askable if _several(possible.get(a, self.every[a]))]
            if not living:
                return None
            attribute = living[dice.below(len(living))]
        cells = possible.get(attribute, self.every[attribute])
        if self.numeric[attribute]:
            # Possible bins are neighbours; an edge between two of them has two answers.
            lowest = (cells & -cells).bit_length() - 1
            return attribute, lowest + dice.below(cells.bit_length() - 1 - lowest)
        while True:
            place = dice.below(cells.bit_length())
            if cells >> place & 1:
                return attribute, place

    def answered(self, possible: Possible, test: Test) -> tuple[Possible | None, Possible | None]:
        """What is possible after yes and after no; None where the answer itself is not."""
        attribute, place = test
        cells = possible.get(attribute, self.every[attribute])
        yes = cells >> (place + 1) << (place + 1) if self.numeric[attribute] else cells & 1 << place
        no = cells & ~yes
        return (
            {**possible, attribute: yes} if yes else None,
            {**possible, attribute: no} if no else None,
        )


def _several(cells: int) -> bool:
    return cells & (cells - 1) != 0
