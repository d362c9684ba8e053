"""The public plan of a table: what is measured, on which grid, with which noise and loss.

Every number here follows from the description of the dataset, the request and the loss. Cells are
those of the public domain, so neither their number nor their order depends on records.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

from accounting.composition import Step
from accounting.privacy_loss import PrivacyLoss
from accounting.rho import RhoBound, largest_pure
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.level_tables import Names, rows_read, stored_table
from mechanisms.model.table_candidates import table_domain
from mechanisms.statistics.grid import Plan as Grid
from mechanisms.statistics.grid import rate_at_most
from mechanisms.statistics.predicate import level_attributes
from mechanisms.statistics.tables import public_rows, replaces
from mechanisms.tables.noise import GaussianNoise, LaplaceNoise, Noise
from mechanisms.tables.parts import Count, Part
from mechanisms.tables.request import Margin, TableRequest

#: The largest public bound on rows. With more rows, counts would not be exact in 64 bits on every
#: grid.
LARGEST_BOUND = 1 << 29


@dataclass(frozen=True)
class Measurement:
    """One part, released over the cells of the table (``margin`` None) or over one margin."""

    part: Part
    margin: Margin | None
    loss: PrivacyLoss
    grid: Grid
    noise: Noise

    @property
    def what(self) -> str:
        """The name of the measurement in prices and answers."""
        if self.margin is None:
            return f"{self.part.what}, every cell"
        return f"{self.part.what}, {over(self.margin)}"


@dataclass(frozen=True)
class TablePlan:
    """The plan of one table. Raises: UnsupportedQuery, here or in its members, if it does not fit.

    Privacy: the measurements together are ``loss``-private under the dataset's relation. Each is
    noise of rate ε_i / change, and the sum of the ε_i is at most ε. One change of the records moves
    the numbers of a part by at most its ``change`` in the L1 norm (``parts``). A number of persons
    is private for whole persons alone, at ``records_per_person`` times ``loss`` (``persons``).
    A loss in ρ alone takes Gaussian noise instead: Σ Q_i/(2σ_i²) is at most ρ, where Q_i bounds the
    sum of the squares of these moves.
    """

    request: TableRequest
    dataset: Dataset
    loss: PrivacyLoss

    @cached_property
    def rows(self) -> int:
        """The public bound on the number of rows, or their number under ``replace``."""
        rows = public_rows(self.dataset) if self.replaces else table_domain(self.dataset).max_rows
        if rows is None:
            raise UnsupportedQuery("max_rows is not fixed yet")
        if rows > LARGEST_BOUND:
            raise UnsupportedQuery(
                "tables are exact up to a public bound on the rows",
                supported={"rows": LARGEST_BOUND},
            )
        return rows

    @cached_property
    def level_table(self) -> Names | None:
        """The stored table that has all counts of the cells; None if the rows must be read."""
        if any(one.part != Count() for one in self.measurements):
            return None
        if not all(one.is_of_levels(self.dataset) for one in self.request.by):
            return None
        names = level_attributes(self.request.where, self.dataset)
        return None if names is None else stored_table(self.dataset, {*names, *self.request.names})

    @cached_property
    def rows_read(self) -> int:
        """The public number of rows, or of the cells of a stored table, that are counted."""
        if self.level_table is None:
            return self.rows
        return rows_read(self.dataset, self.level_table, self.rows)

    @cached_property
    def replaces(self) -> bool:
        return replaces(self.dataset)

    @cached_property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """The names of the groups of each axis."""
        return self.request.labels(self.dataset)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(labels) for labels in self.labels.values())

    @property
    def cells(self) -> int:
        """The number of cells of the public domain."""
        return prod(self.shape)

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        """All measurements; their losses add up to ``loss``, and the last has the remainder."""
        weights = self.request.weights(self.dataset)
        losses = self.loss.weighted(list(weights.values()))
        smallest: dict[Part, int] = {}
        for (part, _), loss in zip(weights, losses, strict=True):
            # The grid on which numbers are rounded follows from an ε. A loss in ρ alone has no ε.
            # So the largest ε is taken at which every ε-DP release has at most this ρ.
            nano = largest_pure(loss.rho_femto) if loss.unpriced else loss.epsilon_nano
            smallest[part] = min(nano, smallest.get(part, nano))
        if min(smallest.values()) < 1:
            raise UnsupportedQuery("the share of one release is less than the smallest loss")
        # A table and its margins, the totals over some of its attributes, are rounded to one grid.
        # So before noise each total is exactly the sum of its cells, in grid steps.
        grids = {part: part.plan(self.dataset, self.rows, nano) for part, nano in smallest.items()}
        return tuple(
            Measurement(part, margin, loss, grid, self._noise(part, margin, loss, grid))
            for (part, margin), loss in zip(weights, losses, strict=True)
            for grid in (grids[part],)
        )

    def steps(self) -> tuple[Step, ...]:
        """The steps that spend the loss; they add up to it exactly."""
        law = "Gaussian" if self.loss.unpriced else "Laplace"
        return tuple(
            Step(f"{law} noise: {one.what}", one.loss, bound=self._rho_bound(one))
            for one in self.measurements
        )

    def margins(self) -> Iterator[Margin]:
        """The margins of the answer: all proper subsets of the axes, or none."""
        if self.request.totals != "none":
            names = self.request.names
            for size in range(len(names)):
                yield from combinations(names, size)

    def axes(self, margin: Margin) -> tuple[int, ...]:
        """The numbers of the axes of a margin."""
        return tuple(self.request.names.index(name) for name in margin)

    def merged(self, margin: Margin) -> int:
        """The number of cells that one number of a margin sums."""
        axes = self.axes(margin)
        return prod(size for axis, size in enumerate(self.shape) if axis not in axes)

    def _noise(self, part: Part, margin: Margin | None, loss: PrivacyLoss, grid: Grid) -> Noise:
        if loss.unpriced:
            return GaussianNoise.of(loss.rho_femto, part.moves(self.dataset, grid))
        change = part.change(self.dataset, grid, self._size(margin))
        return LaplaceNoise(rate_at_most(loss.epsilon() / change))

    def _rho_bound(self, one: Measurement) -> RhoBound:
        return one.part.rho_bound(self.dataset, one.grid, self._size(one.margin), one.noise)

    def _size(self, margin: Margin | None) -> int:
        """The number of cells of a margin, or of the table."""
        return self.cells if margin is None else self.cells // self.merged(margin)


def over(margin: Margin) -> str:
    """A margin in words."""
    return f"totals by {' and '.join(margin)}" if margin else "grand total"
