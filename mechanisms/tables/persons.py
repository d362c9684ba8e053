"""Distinct persons per cell, for tables whose rows are those of persons.

A person with up to c rows is in at most min(c, cells) cells. So a whole person moves the cells by
at most that in the L1 norm, each by at most 1: a total over everything moves by 1.
"""

from dataclasses import dataclass
from fractions import Fraction

from accounting.rho import RhoBound
from mechanisms.model.domains import Dataset
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.table_candidates import table_domain
from mechanisms.statistics.grid import Plan
from mechanisms.tables.aggregates import Aggregate, Numbers, Released
from mechanisms.tables.intervals import Box
from mechanisms.tables.noise import Noise
from mechanisms.tables.parts import Part


@dataclass(frozen=True)
class Persons(Part):
    """The distinct persons with a row in a cell: no sum over rows, so margins do not add up."""

    what = "persons"

    def plan(self, dataset: Dataset, rows: int, epsilon_nano: int) -> Plan:
        if table_domain(dataset).person is None:
            raise UnsupportedQuery(
                "persons are counted where the dataset has a column of persons",
                supported={"aggregates": ["count", "sum", "mean", "variance", "quantiles"]},
            )
        return Plan(0, 1)

    def change(self, dataset: Dataset, grid: Plan, cells: int) -> Fraction:
        members = dataset.records_per_person
        return Fraction(min(members, cells), members)

    def rho_bound(self, dataset: Dataset, grid: Plan, cells: int, noise: Noise) -> RhoBound:
        return noise.distinct_rho_bound(cells)


@dataclass(frozen=True)
class PersonsOf(Aggregate):
    """How many persons have a row in a cell."""

    columns = ("persons",)

    def parts(self, dataset: Dataset) -> tuple[Part, ...]:
        return (Persons(),)

    def values(self, released: Released, dataset: Dataset) -> list[Numbers]:
        return [released[Persons()].values]

    def boxes(self, released: Released, dataset: Dataset, miss: Fraction) -> list[Box]:
        return [released[Persons()].box(miss)]
