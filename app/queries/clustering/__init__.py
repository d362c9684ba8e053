"""``clustering``: centres of the records of a table."""

from pathlib import Path

from app.queries.clustering.body import Clustering
from app.queries.clustering.drawing import draw
from app.queries.clustering.examples import EXAMPLES
from app.queries.clustering.form import ClusteringForm
from app.queries.parts.kind import Kind, by_fields

KIND = Kind(
    body=Clustering,
    folder=Path(__file__).parent,
    form=ClusteringForm(),
    examples=EXAMPLES,
    mechanism=by_fields("encoding"),
    arguments=("clusters",),
    draw=draw,
)
