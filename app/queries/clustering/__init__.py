"""The query kind ``clustering``: private cluster centres of the records of a table."""

from app.queries.clustering.body import Clustering
from app.queries.clustering.columns import columns
from app.queries.clustering.drawing import draw
from app.queries.clustering.examples import EXAMPLES
from app.queries.parts.form import KindForm
from app.queries.parts.kind import Kind, by_fields

KIND = Kind(
    form=KindForm(Clustering, 50, ("table",), folded={"distance": "How the distances are learned"}),
    examples=EXAMPLES,
    columns=columns,
    mechanism=by_fields("encoding"),
    arguments=("clusters",),
    draw=draw,
)
