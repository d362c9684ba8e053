"""``selection``: one candidate, chosen privately."""

from pathlib import Path

from app.queries.parts.kind import Kind, by_fields
from app.queries.selection.body import Selection
from app.queries.selection.examples import EXAMPLES
from app.queries.selection.form import SelectionForm

KIND = Kind(
    body=Selection,
    folder=Path(__file__).parent,
    form=SelectionForm(),
    examples=EXAMPLES,
    mechanism=by_fields("selector", "sensitivity"),
    arguments=("utilities",),
)
