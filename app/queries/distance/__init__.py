"""The query kind ``distance``: private distances between the values of attributes."""

from app.queries.distance.body import Distance
from app.queries.distance.columns import columns
from app.queries.distance.drawing import draw
from app.queries.distance.examples import EXAMPLES
from app.queries.parts.form import KindForm
from app.queries.parts.kind import Kind, by_fields

#: Parameters that the form folds away: two that only the context method ``baseline`` reads, and
#: those that are varied only to compare mechanisms.
COMPARISONS = ("selection_rule", "threshold", "context_share", "sensitivity", "selector")

KIND = Kind(
    form=KindForm(Distance, 40, ("table",), advanced=COMPARISONS),
    examples=EXAMPLES,
    columns=columns,
    mechanism=by_fields("context", "sensitivity"),
    arguments=("target",),
    draw=draw,
)
