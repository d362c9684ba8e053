"""The form of a selection."""

from __future__ import annotations

from app.queries.parts.candidate_form import CandidateForm
from app.queries.selection.body import Selection


class SelectionForm(CandidateForm):
    body = Selection
    order = 10
