"""Do trees gain where a numeric attribute is split at a threshold, and not into all of its bins?

The service splits a numeric attribute into its public bins. Here each bin edge becomes an attribute
of two levels, below it and above it, so the trees of the service split at thresholds and pay what
they pay for any attribute. Of ``id3`` every edge is a candidate on every path. A tree of random
splits has one random edge of each numeric attribute.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.bench import Bar, Setting, for_each, rows_of
from benchmarks.data.tables import Table
from benchmarks.result import Cell, Result, mean
from benchmarks.simulation import randomness
from benchmarks.trees.learners import forest_accuracy, id3, split
from benchmarks.trees.tables import tree_table
from mechanisms.model.domains import CategoricalAttribute, NumericAttribute
from mechanisms.model.records import TableRecords
from mechanisms.trees.dice import Dice
from mechanisms.trees.expectation import TREES

BINS, EPSILONS = (5, 20), (0.05, 0.1, 0.5, 1.0, 2.0)
RUNS = 20
#: The largest ε at which splits at thresholds are expected to gain nothing.
MOST = 1.0

#: For each numeric attribute, which of its bin edges become attributes of two levels, below and
#: above.
Edges = Mapping[str, Sequence[int]]


def every_edge(table: Table) -> Edges:
    return {one.name: range(1, len(one.edges) - 1) for one in _numeric(table)}


def random_edges(table: Table) -> Edges:
    """One edge of each numeric attribute, drawn as the service draws, from no record."""
    dice = Dice(randomness())
    return {one.name: [1 + dice.below(len(one.edges) - 2)] for one in _numeric(table)}


def ordered(table: Table, edges: Edges) -> Table:
    """The table with an attribute of two levels for each of these edges.

    A missing number takes the middle of its bounds, as at the thresholds of evolutionary trees.
    """
    attributes, codes = list(table.domain.attributes), dict(table.records.codes)
    for one in _numeric(table):
        bins, column = len(one.edges) - 1, codes.pop(one.name)
        middle = int(np.searchsorted(one.edges, (one.lower + one.upper) / 2, side="right")) - 1
        filled = np.where(column < bins, column, min(middle, bins - 1))
        new = {f"{one.name} from {one.edges[edge]:g}": filled >= edge for edge in edges[one.name]}
        codes |= {name: above.astype(np.uint8) for name, above in new.items()}
        attributes.remove(one)
        attributes += [CategoricalAttribute(name, ("below", "above")) for name in new]
    domain = replace(table.domain, attributes=tuple(attributes))
    dataset = replace(table.dataset, domain=domain)
    return Table(table.name, dataset, TableRecords(codes, {}))


def _numeric(table: Table) -> list[NumericAttribute]:
    return [one for one in table.attributes if isinstance(one, NumericAttribute)]


def of_id3(table: Table, thresholds: bool, epsilon: float, run: int) -> float:
    variant = ordered(table, every_edge(table)) if thresholds else table
    return id3(variant, split(variant, run), epsilon)


def of_forest(table: Table, thresholds: bool, epsilon: float, run: int) -> float:
    def variant() -> Table:
        return ordered(table, random_edges(table)) if thresholds else table

    tables = [variant() for _ in range(TREES)]
    return forest_accuracy([(one, split(one, run)) for one in tables], epsilon)


LEARNERS: Mapping[str, Callable[[Table, bool, float, int], float]] = {
    "id3": of_id3,
    "forest": of_forest,
}


def measured(result: Result, setting: Setting, name: str) -> None:
    rows, runs = list[Sequence[Cell]](), range(setting.times(RUNS))
    tables = {bins: tree_table(setting.data, name, bins) for bins in BINS}
    for (learner, accuracy), epsilon in product(LEARNERS.items(), setting.fewer(EPSILONS)):
        line: list[Cell] = []
        for bins, table in tables.items():
            by_bins, by_threshold = (
                100 * np.array([accuracy(table, thresholds, epsilon, run) for run in runs])
                for thresholds in (False, True)
            )
            gain = by_threshold - by_bins
            line += [mean(by_bins), mean(by_threshold), mean(gain)]
            if epsilon <= MOST:
                what = f"{name}, {learner}, {bins} bins, ε = {epsilon:g}"
                result.estimate(f"{what}: thresholds above bins", gain, "points")
        rows.append((learner, epsilon, *line))
    titles = [f"{bins} {what}" for bins in BINS for what in ("bins", "as thresholds", "gain")]
    result.table(f"{name}: accuracy in %", ("learner", "ε", *titles), rows)


BENCHES = for_each(
    "trees.ordered_splits",
    "Do trees of {} gain by thresholds on numeric attributes in place of their bins?",
    measured,
    "",
    {"adult": 250.0, "cmc": 30.0},
    rows_of,
    rivals=("bins as levels",),
    bars=(Bar("*: thresholds above bins", most=1),),
)
