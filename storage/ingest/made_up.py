"""Made-up records in the form of an upload, drawn from a public domain alone.

They say nothing about the records of a dataset, and no distribution in them is theirs.
"""

import io
from math import floor, log10
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mechanisms.model.dates import DateAttribute
from mechanisms.model.domains import (
    Attribute,
    CategoricalAttribute,
    Domain,
    GraphDomain,
    NumericAttribute,
    PrefixDomain,
    TableDomain,
)
from mechanisms.model.open_domain import OpenAttribute
from storage.ingest.prefix import CUTOFF

if TYPE_CHECKING:
    import pyarrow as pa

MadeUpFormat = Literal["csv", "parquet"]
#: On average one cell in this many is missing, in columns that may have missing cells.
MISSING_EVERY = 20
#: The average number of rows per person, in a table whose rows belong to persons.
ROWS_EACH = 3
#: The most digits after the decimal point to which made-up numbers are rounded. More would overflow
#: a double while rounding.
MOST_DIGITS = 300


def width(domain: Domain) -> int:
    """The number of columns of a file of records."""
    if not isinstance(domain, TableDomain):
        return 2
    return len(domain.attributes) + (domain.person is not None)


def made_up(domain: Domain, rows: int, form: MadeUpFormat) -> bytes:
    """A file of at most ``rows`` records; the same arguments give the same bytes.

    A graph has fewer edges if its nodes and degrees leave no room. A prefix dataset has one row.
    """
    return _file(_columns(domain, rows, form), form)


def _columns(domain: Domain, rows: int, form: MadeUpFormat) -> dict[str, "pa.Array"]:
    import pyarrow as pa

    random = np.random.default_rng(0)
    match domain:
        case TableDomain():
            cells = {one.name: _cells(one, rows, random, form) for one in domain.attributes}
            if domain.person is not None:
                persons = max(rows // ROWS_EACH, 1)
                cells[domain.person] = pa.array(random.integers(persons, size=rows))
            return cells
        case GraphDomain():
            ends = zip(*_edges(domain, rows, random), strict=True)
            labelled = [[domain.label(node) for node in column] for column in ends] or [[], []]
            return dict(zip(("source", "target"), map(pa.array, labelled), strict=True))
        case PrefixDomain():
            return {CUTOFF: pa.array([len(domain.public_values) // 2])}


def _cells(
    attribute: Attribute, rows: int, random: np.random.Generator, form: MadeUpFormat
) -> "pa.Array":
    """A column of uniform values; in CSV a missing number is the text of the description."""
    import pyarrow as pa

    match attribute:
        case CategoricalAttribute():
            return pa.array(attribute.levels).take(
                pa.array(random.integers(len(attribute.levels), size=rows))
            )
        case OpenAttribute():
            # The description of an open attribute lists no values, so made-up records get invented
            # ones.
            return pa.array([f"made up {n}" for n in random.integers(20, size=rows).tolist()])
        case DateAttribute():
            return _dates(attribute, rows, random)
        case NumericAttribute():
            numbers = _numbers(attribute, rows, random)
            if attribute.missing is None:
                return pa.array(numbers)
            missing = random.integers(MISSING_EVERY, size=rows) == 0
            column = pa.array(numbers, mask=missing)
            if form == "csv":
                column = column.cast(pa.string()).fill_null(attribute.missing)
            return column


def _dates(attribute: DateAttribute, rows: int, random: np.random.Generator) -> "pa.Array":
    """Uniform dates as texts, with the text of the description in place of missing ones."""
    import pyarrow as pa

    first = np.datetime64(attribute.first)
    texts = (first + random.integers(len(attribute.codes), size=rows)).astype(str).astype(object)
    if attribute.missing is not None:
        texts[random.integers(MISSING_EVERY, size=rows) == 0] = attribute.missing
    return pa.array(texts, pa.string())


def _numbers(attribute: NumericAttribute, rows: int, random: np.random.Generator) -> NDArray[Any]:
    """Numbers within bounds, of about three digits: ages between 0 and 120 are integers."""
    width = attribute.upper - attribute.lower
    # Rounding multiplies by 10 to the power of the digits. If that were above the largest double,
    # every number would become NaN. So the digits are limited.
    digits = min(2 - floor(log10(width)), MOST_DIGITS) if width > 0 else 0
    numbers = np.round(random.uniform(attribute.lower, attribute.upper, rows), digits)
    inside = np.clip(numbers, attribute.lower, attribute.upper)
    return inside.astype(np.int64) if (inside == np.round(inside)).all() else inside


def _edges(domain: GraphDomain, rows: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Different random edges that keep every degree within its bound."""
    edges: dict[tuple[int, int], None] = {}
    degrees: dict[int, int] = {}
    # Pairs that are loops, repeat an edge or exceed the degree bound are dropped. So four times as
    # many pairs are drawn as edges are needed.
    for one, other in random.integers(domain.nodes, size=(4 * rows, 2)).tolist():
        edge = (min(one, other), max(one, other))
        has_room = max(degrees.get(one, 0), degrees.get(other, 0)) < domain.max_degree
        if len(edges) < rows and one != other and edge not in edges and has_room:
            edges[edge] = None
            degrees[one] = degrees.get(one, 0) + 1
            degrees[other] = degrees.get(other, 0) + 1
    return list(edges)


def _file(columns: dict[str, "pa.Array"], form: MadeUpFormat) -> bytes:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    table, file = pa.table(columns), io.BytesIO()
    if form == "csv":
        pa_csv.write_csv(table, file, pa_csv.WriteOptions(quoting_style="needed"))
    else:
        pq.write_table(table, file)
    return file.getvalue()
