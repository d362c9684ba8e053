"""Descriptions of utilities and objectives for the catalogue, defined beside the code they
describe."""

from collections.abc import Mapping
from dataclasses import dataclass

from mechanisms.model.domains import NeighbouringRelation


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


#: δ is admissible for one relation, so each relation has its own facts.
ByRelation = Mapping[NeighbouringRelation, SensitivityFacts]


@dataclass(frozen=True)
class ObjectiveFacts:
    """An objective in words. Its sensitivity follows from the sensitivities of its members."""

    title: str
    description: str
    source: str
    sensitivity: SensitivityFacts
    #: The public rule for the direction in which ``Sensitivity.SHIFTED`` moves the objective.
    shift: str
