"""The query kind ``tree``: differentially private decision trees."""

from app.queries.parts.form import KindForm
from app.queries.parts.kind import Kind, by_fields
from app.queries.tree.body import ALGORITHMS, AnyTree, Tree
from app.queries.tree.columns import columns
from app.queries.tree.examples import EXAMPLES
from app.queries.tree.formats import FORMATS, draw

KIND = Kind(
    model=AnyTree,
    form=KindForm(
        Tree,
        30,
        ("table",),
        choice="algorithm",
        bodies=ALGORITHMS,
        advanced=("sensitivity", "selector"),
    ),
    examples=EXAMPLES,
    columns=columns,
    mechanism=by_fields("algorithm", "selector", "sensitivity"),
    arguments=("algorithm",),
    draw=draw,
    formats=FORMATS,
)
