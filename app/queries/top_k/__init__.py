"""The query kind ``top_k``: a private selection of several candidates."""

from app.queries.parts.candidate_form import CandidateForm
from app.queries.parts.kind import Kind, by_fields
from app.queries.top_k.body import TopK
from app.queries.top_k.columns import columns
from app.queries.top_k.drawing import draw
from app.queries.top_k.examples import EXAMPLES

KIND = Kind(
    form=CandidateForm(
        TopK, 20, advanced=("sensitivity", "selector", "draws", "rescore", "stages", "passes")
    ),
    examples=EXAMPLES,
    columns=columns,
    mechanism=by_fields("selector", "sensitivity"),
    arguments=("k", "utilities"),
    draw=draw,
)
