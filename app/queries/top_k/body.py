"""The body of ``top_k`` queries: k candidates without replacement, in the order of the draws."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from app.queries.parts.scored_selection import Drawing, ScoredSelection
from mechanisms.selection import Choice

#: The largest k. Peeled draws (one by one) take time in proportion to k times the candidates.
MAX_K = 1000


class TopK(ScoredSelection):
    """Selects k candidates, likely those with the highest utility."""

    name: ClassVar[str] = "top_k"
    title: ClassVar[str] = "Private top-k"
    description: ClassVar[str] = (
        "k candidates out of a public list, likely those of the highest utility: drawn one after "
        "another, as one set, or as the largest of a noisy vector with its values."
    )

    gaussian: ClassVar[bool] = True

    kind: Literal["top_k"]
    k: int = Field(ge=1, le=MAX_K, description="How many candidates to select.")
    draws: Literal["auto", "peeled", "one_shot"] = "auto"
    rescore: bool = Field(
        default=False,
        description="For `pareto`: each draw compares only the candidates that remain.",
    )

    def drawing(self) -> Drawing:
        return Drawing(self.k, self.draws, self.rescore)

    def answer(self, labels: list[int | str], choice: Choice) -> dict[str, Any]:
        return {"selected": labels, "ordered": choice.ordered}
