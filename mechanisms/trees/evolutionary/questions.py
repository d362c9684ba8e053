"""All tests that a proposed tree may make, from the public schema alone, and which are live.

A test compares a categorical attribute with one of its levels, or a numeric one with an inner edge
of its public bins. So an attribute has cells: its levels or bins. The answers on a path leave some
cells possible. A test is live while both of its answers are possible.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mechanisms.model.domains import NumericAttribute
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.forest import Literal
from mechanisms.trees.dice import Dice
from mechanisms.trees.task import Task

#: A test of a tree: the number of an attribute, and the number of the value that it is compared
#: with. For a numeric attribute, the latter is the number of the inner edge between two bins.
Test = tuple[int, int]
#: For each attribute tested on a path of a tree, the values or bins that the answers leave
#: possible, as set bits. An attribute that is not listed keeps all of its values or bins.
Cells = Mapping[int, int]
ANYTHING: Cells = {}


@dataclass(frozen=True)
class Questions:
    """The tests of a task. Raises: UnsupportedQuery when no attribute can be tested."""

    task: Task

    def __post_init__(self) -> None:
        if not self.askable:
            raise UnsupportedQuery(
                "no attribute can be tested: a categorical one needs two levels, a "
                "numeric one two bins"
            )

    @cached_property
    def numeric(self) -> tuple[bool, ...]:
        return tuple(isinstance(a, NumericAttribute) for a in self.task.attributes)

    @cached_property
    def every(self) -> tuple[int, ...]:
        """For each attribute, a number with one bit set per cell."""
        return tuple(
            (1 << (len(a.edges) - 1 if isinstance(a, NumericAttribute) else len(a.levels))) - 1
            for a in self.task.attributes
        )

    @cached_property
    def askable(self) -> tuple[int, ...]:
        """The attributes of two cells or more."""
        return tuple(a for a, cells in enumerate(self.every) if _several(cells))

    def threshold(self, test: Test) -> float:
        """The edge with which a numeric attribute is compared."""
        attribute = self.task.attributes[test[0]]
        assert isinstance(attribute, NumericAttribute)
        return attribute.edges[test[1] + 1]

    def literal(self, test: Test) -> Literal:
        """The test in the form that flattened trees have."""
        number, place = test
        name = self.task.attributes[number].name
        return (name, -1, self.threshold(test)) if self.numeric[number] else (name, place, None)

    def draw(self, possible: Cells, dice: Dice) -> Test | None:
        """A test both of whose answers are possible, or None: first a uniform attribute that has
        one, then a uniform edge or value of it."""
        attribute = self.askable[dice.below(len(self.askable))]
        if not _several(possible.get(attribute, self.every[attribute])):
            # The drawn attribute has a single possible value or bin left. So the draw is repeated
            # among the attributes that have several. It remains uniform over them, because the
            # first draw favours none.
            live = [a for a in self.askable if _several(possible.get(a, self.every[a]))]
            if not live:
                return None
            attribute = live[dice.below(len(live))]
        cells = possible.get(attribute, self.every[attribute])
        if self.numeric[attribute]:
            # The possible bins of a numeric attribute are contiguous. So a test at any edge between
            # two of them has two possible answers.
            lowest = (cells & -cells).bit_length() - 1
            return attribute, lowest + dice.below(cells.bit_length() - 1 - lowest)
        while True:
            place = dice.below(cells.bit_length())
            if cells >> place & 1:
                return attribute, place

    def answered(self, possible: Cells, test: Test) -> tuple[Cells | None, Cells | None]:
        """The possible cells after yes and after no; None for an impossible answer."""
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
