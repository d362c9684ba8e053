"""The form of a top-k selection."""

from __future__ import annotations

from app.queries.parts.candidate_form import CandidateForm
from app.queries.top_k.body import TopK


class TopKForm(CandidateForm):
    body = TopK
    order = 20
