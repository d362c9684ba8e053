"""The body of ``selection`` queries: one candidate, likely one of high utility."""

from __future__ import annotations

from typing import ClassVar, Literal

from app.queries.parts.scored_selection import ScoredSelection


class Selection(ScoredSelection):
    """Selects one candidate, likely one of high utility."""

    name: ClassVar[str] = "selection"
    title: ClassVar[str] = "Private selection"
    description: ClassVar[str] = (
        "One candidate out of a public list, likely one whose utility is close to the highest."
    )

    kind: Literal["selection"]
    selector: Literal["auto", "permute_and_flip", "exponential"] = "auto"
