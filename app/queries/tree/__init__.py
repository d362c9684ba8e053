"""The query kind ``tree``: differentially private decision trees, and naive Bayes models."""

from app.queries.parts.form import KindForm
from app.queries.parts.kind import Kind, Stored
from app.queries.tree.body import ALGORITHMS, AnyTree, Tree
from app.queries.tree.columns import columns
from app.queries.tree.examples import EXAMPLES
from app.queries.tree.formats import FORMATS, draw
from mechanisms.model.domains import NeighbouringRelation


def _mechanism(query: Stored, relation: NeighbouringRelation) -> str:
    """Returns the algorithm with the selector and the sensitivity, where it has them."""
    del relation
    names = ["algorithm", "splits", "selector", "sensitivity"]
    if query.get("splits") == "random":
        names = names[:2]  # Random splits need no selector and no sensitivity.
    return ": ".join(str(query[name]) for name in names if name in query)


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
    mechanism=_mechanism,
    arguments=("algorithm",),
    draw=draw,
    formats=FORMATS,
)
