"""The query kind ``distance``: private distances between the values of attributes."""

from app.queries.distance.body import Distance
from app.queries.distance.columns import columns
from app.queries.distance.drawing import draw
from app.queries.distance.examples import EXAMPLES
from app.queries.parts.form import KindForm
from app.queries.parts.kind import Kind, by_fields

#: The form folds these parameters away. The first two matter only if the request chooses contexts
#: (the attributes from which distances are learned) by the method ``baseline``. The others are
#: varied only to compare mechanisms.
COMPARISONS = ("selection_rule", "threshold", "context_share", "sensitivity", "selector")

KIND = Kind(
    form=KindForm(Distance, 40, ("table",), advanced=COMPARISONS),
    examples=EXAMPLES,
    columns=columns,
    mechanism=by_fields("context", "sensitivity"),
    arguments=("target",),
    draw=draw,
)
