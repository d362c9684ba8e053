"""The most recall of top-k counts that a private mechanism can have under replace.

The mechanism may know everything of the table but who is who: if two values change places in the
table, they do so in the law of its answer. Compare the last of the k most frequent values and the
next one, the rivals. One of them has to be left out, and the answer says which: the only rival that
is not selected, else one at random of those that are not selected, or of all. Whenever it is
another than the last, a value is missed.

The law of the rival that is left out is private, and treats rivals alike. A linear programme over
all such laws, on tables that move records among the rivals, bounds how rarely a value is missed.
It may compare some of these tables alone, because fewer tables have fewer conditions.
``docs/dev/theory/joint.md`` has the proof.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import exp

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

#: For each rival (a value near rank k), how many units of records it has beyond the last rival. The
#: numbers fall, and a unit is a number of records that move together.
Table = tuple[int, ...]
#: One constraint of the linear programme: the coefficient of each variable, by the variable's
#: number.
Row = Mapping[int, float]


def most_recall_of_counts(
    counts: Sequence[int], k: int, epsilon: float, rivals: int = 2, unit: int = 1, stride: int = 1
) -> float:
    """A bound on the expected recall of the k most frequent values under the relation replace.

    Args:
        counts: the number of records of each of more than k values, in falling order.
        rivals: the number of values that are compared, 2 to k + 1. They are the value of rank
            k + 1 and the values just above it.
        unit: the number of records that move together from one rival to another. It must divide
            every difference between the counts of rivals.
        stride: the linear programme has only the tables whose counts differ from ``counts`` by
            multiples of this many units, whichever rival has which count.
    """
    gaps = [count - counts[k] for count in counts[k + 1 - rivals : k + 1]]
    if any(gap % unit for gap in gaps):
        raise ValueError(f"units of {unit} records do not divide the gaps {gaps}")
    table = tuple(gap // unit for gap in gaps)
    return 1 - _least_misses(table, epsilon * unit, stride) / k


def _least_misses(table: Table, epsilon: float, stride: int) -> float:
    """The least chance that on ``table`` another rival than the last is left out.

    ``epsilon``: the loss of moving one unit of records from one rival to another.
    """
    width = len(table)
    first = {one: width * number for number, one in enumerate(_tables(table, stride))}

    def chances(one: Sequence[int]) -> list[int]:
        """For each rival, the variable of the chance to be left out; empty for other tables."""
        falling = tuple(sorted(one, reverse=True))
        return [first[falling] + falling.index(each) for each in one] if falling in first else []

    # A variable is the chance that a rival is left out on a table. For two variables of one rival,
    # ``moved`` has the least number of units of records by which their tables differ.
    moved: dict[tuple[int, int], int] = {}
    for one in first:
        for giver, taker in permutations(range(width), 2):
            for units in range(1, stride + 1):
                other = list(one)
                other[giver] -= units
                other[taker] += units
                # If the programme has no table ``other``, its list of variables is empty and adds
                # no constraint.
                for pair in zip(chances(one), chances(other), strict=False):
                    moved[pair] = min(units, moved.get(pair, units))
    ratios = [{a: exp(-epsilon * units), b: -1.0} for (a, b), units in moved.items() if a != b]
    sums = [{place: float(chances(one).count(place)) for place in chances(one)} for one in first]
    goal = np.zeros(width * len(first))
    # Rivals with equal counts share a variable, so their terms add up.
    np.add.at(goal, chances(table)[:-1], 1)
    best = linprog(
        goal,
        *(_matrix(ratios, goal.size), np.zeros(len(ratios))),
        *(_matrix(sums, goal.size), np.ones(len(sums))),
        method="highs-ipm",
    )
    if not best.success:
        raise ArithmeticError(best.message)
    return float(best.fun)


def _tables(table: Table, stride: int) -> Iterator[Table]:
    """The tables of as many records, none above the largest count, that are a stride apart."""
    remainders = sorted(one % stride for one in table)

    def falling(rest: int, most: int, places: int) -> Iterator[Table]:
        if places == 1:
            yield (rest,)
            return
        for count in range(-(-rest // places), min(most, rest) + 1):
            for others in falling(rest - count, min(count, rest - count), places - 1):
                yield (count, *others)

    for one in falling(sum(table), table[0], len(table)):
        if sorted(count % stride for count in one) == remainders:
            yield one


def _matrix(rows: Sequence[Row], width: int) -> coo_array:
    entries = [(at, column, value) for at, row in enumerate(rows) for column, value in row.items()]
    at, columns, values = zip(*entries, strict=True)
    return coo_array((values, (at, columns)), shape=(len(rows), width))
