"""Descriptions of utilities and objectives for the catalogue, defined beside the code they
describe."""

from collections.abc import Mapping
from dataclasses import dataclass

from mechanisms.model.domains import NeighbouringRelation
from mechanisms.model.sensitivity import Sensitivity


@dataclass(frozen=True)
class SensitivityFacts:
    """How far one change moves a utility, as formulas in public bounds and private counts.

    ``cap`` is Δ, the largest change in any dataset. ``function`` is δ(t), the admissible bound at
    distance t. ``horizon`` is T, the distance from which δ equals Δ. ``terms`` explains the
    letters.
    """

    cap: str
    function: str
    horizon: str
    terms: str


#: How far one change of the records moves a utility, by neighbouring relation. The relation says
#: what one change is, so a bound for one relation does not hold for another.
ByRelation = Mapping[NeighbouringRelation, SensitivityFacts]


@dataclass(frozen=True)
class JointFacts:
    """How far one change moves all scores together, as formulas (``model.joint_influence``).

    The unit is the most that one change moves a single score. ``spread`` is the bound on the sum of
    the k largest changes less the sum of the k smallest, where j = min(k, n - k) of n candidates.
    ``total`` and ``squares`` bound the L1 norm and the squared L2 norm of all changes.
    ``one_way`` is "up" or "down" where all scores rise or fall if a record or an edge is added, and
    "no" elsewhere.
    """

    spread: str
    total: str
    squares: str
    one_way: str


#: How far one change of the records moves the scores of all candidates together, by neighbouring
#: relation and by sensitivity mode, the way in which a utility becomes a score.
JointByRelation = Mapping[NeighbouringRelation, Mapping[Sensitivity, JointFacts]]

#: The bounds that hold for all scores: one change of the records may move every score by up to one
#: unit, and may raise some scores while it lowers others.
BOTH_WAYS = JointFacts(spread="2j", total="n", squares="n", one_way="no")


def same_for_all(facts: JointFacts) -> Mapping[Sensitivity, JointFacts]:
    """The same facts for every way in which a utility becomes a score."""
    return dict.fromkeys(Sensitivity, facts)


@dataclass(frozen=True)
class ObjectiveFacts:
    """An objective in words. Its sensitivity follows from the sensitivities of its members."""

    title: str
    description: str
    source: str
    sensitivity: SensitivityFacts
    #: A sentence for the catalogue of objectives. It says whether the sensitivity mode ``shifted``
    #: favours candidates whose utility one change of the records moves more, or less. That is a
    #: public rule.
    shift: str
    #: A sentence for the catalogue of objectives. It says how far one change of the records moves
    #: all scores together, which follows from the bounds of the members of the objective.
    joint: str
