"""Made-up records of any size, on which this machine is timed; they follow no dataset.

The work of a query may follow its records up to a public bound. So there are records of several
shapes, and the slowest one counts.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.kernels.graphs.preparation import GRAPH_COLUMNS
from mechanisms.kernels.graphs.totals import GRAPH_TOTALS
from mechanisms.model.domains import (
    CategoricalAttribute,
    Dataset,
    GraphDomain,
    NeighbouringRelation,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)
from mechanisms.model.open_domain import OpenAttribute, OpenValues
from mechanisms.model.records import GraphRecords, PrefixRecords, Records, TableRecords

#: The distributions of the values in a made-up column: all equal, all equal but one, random, and
#: ascending. Each is timed, because the time of a kernel may depend on it: a processor guesses the
#: branches of code on random values wrong.
SHAPES = ("constant", "one_off", "random", "ascending")
MAX_DEGREE = 1000
_GRID = 1 << 26
#: Made-up numbers spread from the middle at this exponential rate per record. The mechanisms by
#: smooth sensitivity search for the distance s at which a bound times e^{−βs} is largest. With a
#: rate of about 2β (β ≈ 0.14 in reference queries) no search ends early, so its longest time is
#: measured.
_STEEPNESS = 0.3


def made_up(size: int, shape: str) -> list[tuple[Records, Dataset]]:
    """Records of this size and shape, for every kind of records and relation."""
    rows, domain = _table(size, shape), table_domain()
    most = replace(domain, max_rows=size, person="person")
    public = replace(domain, rows=size, max_rows=None, min_rows=0)
    with_open = replace(open_domain(), max_rows=size)
    values = tuple(float(i + 1) for i in range(min(size, 4096)))
    return [
        _graph(size, shape),
        (rows, Dataset("speed", NeighbouringRelation.ADD_REMOVE, most)),
        (rows, Dataset("speed", NeighbouringRelation.REPLACE, public)),
        (rows, Dataset("speed", NeighbouringRelation.ADD_REMOVE, with_open)),
        (
            PrefixRecords(len(values) // 2),
            Dataset("speed", NeighbouringRelation.PREFIX, PrefixDomain(values)),
        ),
    ]


def _values(size: int, shape: str, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Whole numbers from 0 to ``most``; random ones are independent for each seed."""
    if shape == "ascending":
        return np.arange(size) * most // max(size - 1, 1)
    if shape == "random":
        return np.random.default_rng(seed).integers(0, most + 1, size)
    values = np.zeros(size, np.int64)
    values[0] = most if shape == "one_off" else 0
    return values


def _steep(size: int) -> NDArray[np.float64]:
    """Numbers from 0 to 8, so far apart around the middle that no search for gaps ends early."""
    away = np.arange(size) - size // 2
    return 4 + 4 * np.sign(away) * np.exp(_STEEPNESS * (np.abs(away) - size // 2))


def _graph(nodes: int, shape: str) -> tuple[GraphRecords, Dataset]:
    """Columns that fit a graph of this shape; its edges themselves are never read."""
    bound = min(MAX_DEGREE, nodes - 1)
    degree = _values(nodes, shape, bound)
    pairs = degree * (degree - 1) // 2
    of = {"egocentric_betweenness": pairs * _GRID // 2, "inner_edges": pairs // 2}
    of |= {"degree": degree.astype(np.int32), "co_degree": (degree // 2).astype(np.int32)}
    of |= dict.fromkeys(("core_number", "h_index"), of["co_degree"])
    columns = {name: stored(of[name], of[name].dtype) for name in GRAPH_COLUMNS}
    totals = {name: np.array([bound // 2]) for name in GRAPH_TOTALS}
    totals["degree_pairs_high"] = np.array([bound])
    edges = np.zeros(2, np.int32)
    records = GraphRecords(np.zeros(nodes + 1, np.int64), edges, columns, totals)
    return records, Dataset("speed", NeighbouringRelation.EDGE, GraphDomain(nodes, bound))


def _table(rows: int, shape: str) -> TableRecords:
    codes: dict[str, NDArray[Any]] = {}
    for seed, one in enumerate(table_domain().attributes):
        most = len(one.levels) - 1
        values = _values(rows, shape, most, seed)
        codes[one.name] = stored(values, np.uint16 if most > 255 else np.uint8)
    # With equally frequent classes, the sensitivity function δ takes longest to compute, so its
    # longest time is measured.
    codes["class"] = stored(np.arange(rows) % 2, np.uint8)
    numbers = _steep(rows) if shape == "ascending" else _values(rows, shape, 8).astype(float)
    numbers = np.sort(numbers)
    persons = stored(np.sort(_values(rows, shape, max(rows - 1, 0))), np.int32)
    codes["open"] = stored(_values(rows, shape, max(rows - 1, 0)), np.int32)
    return TableRecords(
        codes, {"number": numbers}, {"number": numbers}, persons=persons, open_values=texts(rows)
    )


def texts(count: int) -> dict[str, OpenValues]:
    """So many private values of the attribute ``open``, all of one length."""
    width = 8
    values = "".join(f"{number:0{width}}" for number in range(count)).encode()
    ends = stored(np.arange(1, count + 1) * width, np.int64)
    return {"open": OpenValues(stored(np.frombuffer(values, np.uint8), np.uint8), ends)}


def table_domain() -> TableDomain:
    return TableDomain(
        (
            CategoricalAttribute("class", ("a", "b")),
            CategoricalAttribute("few", ("x", "y")),
            CategoricalAttribute("more", ("u", "v", "w")),
            # With more than 256 levels, codes take two bytes. Other compiled code reads these, so
            # it is timed too.
            CategoricalAttribute("many", tuple(map(str, range(300)))),
            NumericAttribute("number", 0.0, 8.0, (0.0, 4.0, 8.0)),
        ),
        class_attribute="class",
        max_rows=8,
        min_rows=1,
        # These records have no stored tables of counts. So queries count rows, and this time is
        # measured.
        level_cells=0,
    )


def open_domain() -> TableDomain:
    """A table of a number and an attribute whose values are private."""
    number = NumericAttribute("number", 0.0, 8.0, (0.0, 4.0, 8.0))
    return TableDomain((OpenAttribute("open"), number), max_rows=8, level_cells=0)


def stored(values: NDArray[Any], dtype: Any) -> NDArray[Any]:
    """Returns ``values`` as a read-only array, like the arrays of an opened version."""
    column = values.astype(dtype)
    column.flags.writeable = False
    return column
