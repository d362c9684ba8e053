"""``tree``: private decision trees."""

from pathlib import Path

from app.queries.parts.kind import Kind, by_fields
from app.queries.tree.body import AnyTree, Tree
from app.queries.tree.drawing import draw
from app.queries.tree.examples import EXAMPLES
from app.queries.tree.form import TreeForm
from app.queries.tree.formats import FORMATS

KIND = Kind(
    body=Tree,
    model=AnyTree,
    folder=Path(__file__).parent,
    form=TreeForm(),
    examples=EXAMPLES,
    mechanism=by_fields("algorithm", "selector", "sensitivity"),
    arguments=("algorithm",),
    draw=draw,
    formats=FORMATS,
)
