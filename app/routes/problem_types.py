"""Where the ``type`` of a problem leads: what it means and whether anything was charged."""

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
    """Every problem that a reply may name."""
    kinds = [ProblemTypeOut.model_validate(kind) for kind in BY_SLUG.values()]
    return Listing(items=kinds, next=None)


@api.get("/{slug}", dependencies=[anyone])
async def explain_problem_type(slug: str) -> ProblemTypeOut:
    """What one problem means."""
    if slug not in BY_SLUG:
        raise NotFound
    return ProblemTypeOut.model_validate(BY_SLUG[slug])
