"""The query kind ``table``: grouped counts, sums, means, variances and quantiles."""

from app.queries.parts.kind import Kind
from app.queries.table.body import Table
from app.queries.table.columns import columns
from app.queries.table.drawing import draw
from app.queries.table.examples import EXAMPLES
from app.queries.table.form import TableForm
from app.queries.table.label import aggregates_of

KIND = Kind(
    form=TableForm(Table, order=55, datasets=("table",)),
    examples=EXAMPLES,
    columns=columns,
    mechanism=aggregates_of,
    arguments=("by",),
    draw=draw,
)
