"""Speeds that fit the timings of references: no floats of a guarantee, but every deadline.

Danger: a cost is worked out for far more records than any reference has. If the growth of a timing
were priced as one of calls, the cost of a row would be 0, and the cost of ten million rows too.
So every unit has a least speed, and the growth from few records to many is covered by units.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import median

import numpy as np
from numpy.typing import NDArray

from app.queries.parts.cost import Speed, Speeds
from mechanisms.model.work import Work

#: The number of rounds by which speeds are fitted to timings. The last thousand rounds change a
#: speed by less than 1 %.
ROUNDS = 3000
#: The fit weighs a time above its predicted cost this many times as much as one below, because work
#: that is priced too low misses deadlines. Which times are above is worked out anew after so many
#: rounds of the fit.
BELOW, STEPS = 30.0, 30
#: The growth of a query is the additional time that it takes on more records. A clock cannot
#: measure a growth below this many seconds. A smaller growth counts as this many, so that no unit
#: of work costs nothing.
RESOLUTION = 5e-6
#: A growth of at least this share of the query's time is more than the noise of the measurement.
CLEAR = 0.25
#: Speeds are fitted so that the predicted time of no reference query is below its measured time.
#: Rounding errors may leave it below by this share, which the check of the fit allows.
_SLACK = 1e-9

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Timing:
    """The seconds of one work, of one run in each round.

    ``fewer``: those of the same query on fewer records in the same rounds, if timed.
    """

    work: Work
    runs: tuple[float, ...]
    fewer: "Timing | None" = None

    @property
    def seconds(self) -> float:
        """The median of its runs."""
        return median(self.runs)

    @property
    def growth(self) -> float:
        """The median of the seconds by which a run is longer than that on fewer records.

        A machine may be slow for some minutes. Both runs of a round are slow then. But the median
        of the runs on more records may be of a slow round, and the other median of a fast one.
        """
        return median(self.differences)

    @property
    def differences(self) -> list[float]:
        """The seconds by which each run is longer than that on fewer records."""
        assert self.fewer is not None
        return [one - other for one, other in zip(self.runs, self.fewer.runs, strict=True)]

    def grown_from(self, *fewer: "Timing") -> "Timing":
        """This timing, compared with that one of ``fewer`` from which it grows most by unit."""

        def by_unit(one: Timing) -> float:
            more = sum(_more(one).values())
            return one.growth / more if more else -inf

        return max((replace(self, fewer=one) for one in fewer), key=by_unit)


def fitted(timings: Sequence[Timing]) -> Speeds:
    """The speeds by which every work takes at least its seconds, and little more.

    The units of two timings of one query cover the growth from the one to the other.
    """
    names = sorted({name for one in timings for name in one.work})
    works = np.array([_amounts(one.work, names) for one in timings])
    seconds = np.array([one.seconds for one in timings])
    grown = [one for one in timings if one.fewer is not None]
    growth, more = _growth(grown, names)
    shares = works / seconds[:, None]
    # A growth is the additional time of a query on more records. It is divided by the whole time of
    # this query, so that a growth that is a small part of it weighs little in the fit.
    of_growth = np.array([one.seconds for one in grown]).reshape(-1, 1)
    rows = np.vstack([shares, growth / of_growth])
    goals = np.concatenate([np.ones(len(shares)), more / of_growth[:, 0]])
    costs = _close(rows, goals, _least(growth, more))
    _raise(costs, growth / more[:, None], shares)
    _raise(costs, shares, shares)
    of = {name: Speed(*costs[2 * i : 2 * i + 2].tolist()) for i, name in enumerate(names)}
    return Speeds(float(costs[-1]), of)


def covers(speeds: Speeds, timings: Sequence[Timing]) -> bool:
    """Whether no timing is longer than its cost, and no growth is priced at nothing."""
    enough = all(speeds.seconds(one.work) >= one.seconds * (1 - _SLACK) for one in timings)
    growing = {name for one in timings for name in _more(one) if one.fewer is not None}
    return enough and all(speeds.of[name].unit > 0 for name in growing)


def _more(one: Timing) -> dict[str, int]:
    """How many more units of each kind there are than on fewer records; none that has no more."""
    if one.fewer is None:
        return {}
    units = {name: amount.units for name, amount in one.fewer.work.items()}
    more = {name: amount.units - units.get(name, 0) for name, amount in one.work.items()}
    return {name: count for name, count in more.items() if count > 0}


def _seconds(grown: Sequence[Timing]) -> Floats:
    """The seconds of each growth: its median, or less if it is a small part of its query.

    A tenth of a long query is within the noise of its runs: it would price a row far too high. So
    the least of its differences counts, unless no clear growth has one of its kinds of work.
    """

    def clear(one: Timing) -> bool:
        return one.growth >= CLEAR * one.seconds

    kinds = {name for one in grown if clear(one) for name in _more(one)}
    sure = [clear(one) or not _more(one).keys() <= kinds for one in grown]
    pairs = zip(grown, sure, strict=True)
    return np.array([one.growth if whole else min(one.differences) for one, whole in pairs])


def _amounts(work: Work, names: Sequence[str]) -> Floats:
    """Calls and units of each kind, then 1 for what every query takes."""
    row = np.zeros(2 * len(names) + 1)
    for name, amount in work.items():
        place = 2 * names.index(name)
        row[place : place + 2] = amount.calls, amount.units
    row[-1] = 1
    return row


def _growth(grown: Sequence[Timing], names: Sequence[str]) -> tuple[Floats, Floats]:
    """The units by which each work grows, in the places of ``_amounts``, and the seconds."""
    units = np.zeros((len(grown), 2 * len(names) + 1))
    for row, one in enumerate(grown):
        assert one.fewer is not None
        for name, count in _more(one).items():
            units[row, 2 * names.index(name) + 1] = count
    seconds = np.maximum(_seconds(grown), RESOLUTION)
    some = units.any(axis=1)
    # If more records give a query no more units of work, its row of ``units`` is all zeros. Then
    # its growth says nothing about the time of a unit, so the least measurable growth stands for
    # it.
    return units, np.where(some, seconds, RESOLUTION)


def _least(growth: Floats, more: Floats) -> Floats:
    """The least speed of each unit: an equal share of the growth of the cheapest query with it."""
    kinds = np.maximum((growth > 0).sum(axis=1), 1)
    with np.errstate(divide="ignore"):
        per_unit = np.where(growth > 0, (more / kinds)[:, None] / growth, np.inf)
    least: Floats = per_unit.min(axis=0, initial=np.inf)
    return np.where(np.isfinite(least), least, 0.0)


def _close(rows: Floats, goals: Floats, least: Floats) -> Floats:
    """x ≥ ``least`` with ``rows`` @ x close to the goals, by multiplicative least squares.

    A goal that is not reached counts ``BELOW`` times. So little is missing in the end, and what
    ``_raise`` adds to one cost does not make all others with it too large.
    """
    rest = np.maximum(goals - rows @ least, 0.0)
    largest = rows.max(axis=0)
    x = 1 / np.where(largest > 0, largest * rows.shape[1], 1)
    for _ in range(ROUNDS // STEPS):
        weighted = rows.T * np.where(rows @ x < rest, BELOW, 1)
        right, left = weighted @ rest, weighted @ rows
        for _ in range(STEPS):
            x *= right / np.maximum(left @ x, 1e-300)
    return least + x


def _raise(costs: Floats, rows: Floats, shares: Floats) -> None:
    """Raise costs until ``rows`` @ costs is at least 1, each where all shares grow least."""
    collateral = shares.sum(axis=0)
    for row in rows[rows.any(axis=1)]:
        missing = 1 - float(row @ costs)
        if missing > 0:
            place = int(np.divide(row, collateral, where=row > 0, out=0 * row).argmax())
            costs[place] += missing / row[place]
