"""``top_k``: several candidates, chosen privately."""

from pathlib import Path

from app.queries.parts.kind import Kind, by_fields
from app.queries.top_k.body import TopK
from app.queries.top_k.examples import EXAMPLES
from app.queries.top_k.form import TopKForm

KIND = Kind(
    body=TopK,
    folder=Path(__file__).parent,
    form=TopKForm(),
    examples=EXAMPLES,
    mechanism=by_fields("selector", "sensitivity"),
    arguments=("k", "utilities"),
)
