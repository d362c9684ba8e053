"""Explanations of problem types; the ``type`` of a problem is a path to one of them."""

from pydantic import Field

from app.contract.models import Listing, Reply
from app.contract.problems import BY_SLUG
from app.http.access import anyone
from app.http.route import router
from storage.errors import NotFound

api = router(prefix="/problems", tags=["problems"])


class ProblemTypeOut(Reply):
    """One kind of problem."""

    type: str = Field(validation_alias="uri")
    title: str
    status: int
    explanation: str


@api.get("", dependencies=[anyone])
async def list_problem_types() -> Listing[ProblemTypeOut]:
    """List every type of problem that a reply may have."""
    kinds = [ProblemTypeOut.model_validate(kind) for kind in BY_SLUG.values()]
    return Listing(items=kinds, next=None)


@api.get("/{slug}", dependencies=[anyone])
async def explain_problem_type(slug: str) -> ProblemTypeOut:
    """Explain one type of problem."""
    if slug not in BY_SLUG:
        raise NotFound
    return ProblemTypeOut.model_validate(BY_SLUG[slug])
