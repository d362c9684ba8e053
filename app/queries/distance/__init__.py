"""``distance``: how far apart values are."""

from pathlib import Path

from app.queries.distance.body import Distance
from app.queries.distance.drawing import draw
from app.queries.distance.examples import EXAMPLES
from app.queries.distance.form import DistanceForm
from app.queries.parts.kind import Kind, by_fields

KIND = Kind(
    body=Distance,
    folder=Path(__file__).parent,
    form=DistanceForm(),
    examples=EXAMPLES,
    mechanism=by_fields("context", "sensitivity"),
    arguments=("target",),
    draw=draw,
)
