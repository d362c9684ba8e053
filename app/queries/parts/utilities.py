"""The form in which a request writes utilities of candidates, and how they form one objective."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from app.contract.models import Body
from app.queries.parts.sentences import listing, words
from mechanisms.model.errors import UnsupportedQuery
from mechanisms.objectives import OBJECTIVES, Objective, Pareto, Term
from mechanisms.utilities import UTILITIES

ObjectiveName = Literal["single", "weighted_sum", "pareto"]
#: A weight in a weighted sum. Larger bounds would be useless: a weight below 2⁻²⁰ of the largest is
#: rounded away.
Weight = Annotated[float, Field(ge=-1e9, le=1e9)]


#: Words for utilities whose name would not read as a noun in a sentence.
NOUNS = {
    "gini": "Gini gain",
    "max": "majority count (max)",
    "true_negatives": "number of true negatives",
    "true_positives": "number of true positives",
}


class UtilityTerm(Body):
    """A utility, given by its name in the catalogue, with its weight in a weighted sum."""

    name: str = Field(max_length=100)
    weight: Weight | None = None

    def phrase(self) -> str:
        weight = "" if self.weight is None else f"{self.weight:g} × "
        return weight + NOUNS.get(self.name, words(self.name))

    def term(self) -> Term:
        if self.name not in UTILITIES:
            raise UnsupportedQuery(
                "there is no such utility", supported={"utilities": sorted(UTILITIES)}
            )
        weight = None if self.weight is None else Decimal(repr(self.weight))
        return Term(UTILITIES[self.name], weight)


class SumTerm(Body):
    """A weighted sum as one member of a Pareto score; the analyst chooses its ``name``."""

    weighted_sum: tuple[UtilityTerm, ...] = Field(min_length=1, max_length=20)
    name: str | None = Field(default=None, max_length=100)

    def phrase(self) -> str:
        # The terms are joined by plus signs. A sentence may list several utilities, and a comma or
        # an "and" would seem to end the sum.
        members = " + ".join(member.phrase() for member in self.weighted_sum)
        members = members.replace(" + -", " − ")
        return f"the weighted sum ({members})"

    def term(self) -> Term:
        return Term(OBJECTIVES["weighted_sum"]([member.term() for member in self.weighted_sum]))


def _which(body: Any) -> str:
    has_sum = "weighted_sum" in body if isinstance(body, dict) else hasattr(body, "weighted_sum")
    return "sum" if has_sum else "utility"


Member = Annotated[
    Annotated[UtilityTerm, Tag("utility")] | Annotated[SumTerm, Tag("sum")], Discriminator(_which)
]


def objective_of(
    name: ObjectiveName, members: Sequence[UtilityTerm | SumTerm], passes: int
) -> Objective:
    """Returns the objective; ``passes`` is for Pareto scores.

    Raises: UnsupportedQuery if the members do not fit it.
    """
    if name != "pareto" and any(isinstance(member, SumTerm) for member in members):
        raise UnsupportedQuery(
            "a weighted sum can be a member of a Pareto score only",
            supported={"objective": "pareto"},
        )
    terms = [member.term() for member in members]
    return Pareto(terms, passes) if name == "pareto" else OBJECTIVES[name](terms)


def phrase_of(name: ObjectiveName, members: Sequence[UtilityTerm | SumTerm]) -> str:
    """Returns the objective in words: "weighted sum of 2 × degree and egocentric density"."""
    phrase = listing(member.phrase() for member in members)
    prefix = {"single": "", "weighted_sum": "weighted sum of ", "pareto": "Pareto score of "}
    return prefix[name] + phrase
