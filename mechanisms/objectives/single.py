"""One utility as an objective."""

from collections.abc import Sequence
from typing import Literal

from mechanisms.model.errors import UnsupportedQuery
from mechanisms.model.facts import ObjectiveFacts, SensitivityFacts
from mechanisms.objectives.objective import Term


class SingleUtility:
    """The only member, unchanged. Implements ``Objective``."""

    facts = ObjectiveFacts(
        title="One utility",
        description="Candidates are ranked by one utility as it is.",
        source="That of the utility.",
        sensitivity=SensitivityFacts(
            cap="Δ of the utility",
            function="δ of the utility",
            horizon="T of the utility",
            terms="see the utility",
        ),
        shift="The direction of the utility.",
        joint="That of the utility.",
    )

    def __init__(self, terms: Sequence[Term]) -> None:
        if len(terms) != 1 or terms[0].weight is not None:
            raise UnsupportedQuery(
                "a single objective has one utility, without a weight",
                supported={"objective": "single", "utilities": 1},
            )
        member = terms[0].member
        self.candidates = member.candidates
        self.relations = member.relations
        self.direction: Literal[1, -1] = member.direction
        self.grid = member.grid
        self.measure = member.measure
        self.work = member.work
        self.joint_influence = member.joint_influence
