"""The query kind ``selection``: a private selection of one candidate."""

from app.queries.parts.candidate_form import CandidateForm
from app.queries.parts.kind import Kind, by_fields
from app.queries.selection.body import Selection
from app.queries.selection.examples import EXAMPLES

KIND = Kind(
    form=CandidateForm(
        Selection, order=10, advanced=("sensitivity", "selector", "stages", "passes")
    ),
    examples=EXAMPLES,
    columns=lambda answer: {"selected": [answer["selected"]]},
    mechanism=by_fields("selector", "sensitivity"),
    arguments=("utilities",),
)
